// Decides for each stream of each rank where it goes.
#include "agent/output/output_plan.h"

#include <algorithm>
#include <iterator>

#include "base/number_ranges.h"
#include "base/template_text.h"

namespace ddprun::agent {
namespace {

// torchrun's default for --log-line-prefix-template.
const std::string kTorchrunsPrefix = "[${role_name}${local_rank}]:";

// For a rank that the plan does not have, nothing was asked for: its output goes to the console.
RankOutput of(const OutputPlan& plan, int local_rank) {
    const auto index = static_cast<std::size_t>(local_rank);
    return index < plan.ranks.size() ? plan.ranks[index] : RankOutput();
}

// "0-3,6", or "all but 5" where that is shorter.
std::string most_of(const std::vector<int>& some, const std::vector<int>& all) {
    std::vector<int> others;
    std::ranges::set_difference(all, some, std::back_inserter(others));
    const std::string ranges = number_ranges(some), but = "all but " + number_ranges(others);
    return others.empty() || ranges.size() <= but.size() ? ranges : but;
}

}  // namespace

int OutputPlan::to_files(int local_rank) const {
    const RankOutput rank = of(*this, local_rank);
    return rank.redirected | rank.teed;
}

int OutputPlan::to_filtered() const {
    return (filters[0].empty() ? 0 : kStdout) | (filters[1].empty() ? 0 : kStderr);
}

std::string OutputPlan::prefix(int local_rank, int rank) const {
    if (prefix_template.empty() && !host.empty())
        return "[" + host + ":" + std::to_string(rank) + "]:";
    return fill_template(prefix_template.empty() ? kTorchrunsPrefix : prefix_template,
                         prefix_values(role, local_rank, rank, hostname), true);
}

std::string OutputPlan::prefix(const RankNames& several, const RankNames& all) const {
    const auto names = host.empty() ? &RankNames::local_ranks : &RankNames::ranks;
    const std::string text = most_of(several.*names, all.*names);
    if (!host.empty()) return "[" + host + ":" + text + "]:";
    return "[" + role + (text.starts_with("all") ? " " : "") + text + "]:";
}

StreamPlan plan_stream(const OutputPlan& plan, int local_rank, int stream, bool has_file) {
    const RankOutput rank = of(plan, local_rank);
    const bool teed = (rank.teed & stream) != 0;
    // --redirects keeps a stream off the console, but only if the file exists. Otherwise the output
    // would be lost.
    const bool hidden = (rank.redirected & stream) != 0 && !teed && has_file;
    return {.console = rank.shown && !hidden,
            .prefix = plan.label == Label::all || (plan.label == Label::teed && teed),
            .filtered = (plan.to_filtered() & stream) != 0 && teed && rank.shown};
}

}  // namespace ddprun::agent
