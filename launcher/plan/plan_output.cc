// Plans the workers' output (plan_output.h).
#include "launcher/plan/plan_output.h"

#include <algorithm>

#include "base/template_text.h"
#include "rendezvous/model/node_name.h"

namespace ddprun::launcher {
namespace {

constexpr Duration kStatusEvery = std::chrono::minutes{10};

using agent::Label;
using agent::RankOutput;

// The agent keeps torchrun's digits: 1 is stdout, 2 is stderr.
int bits(const Streams& streams) {
    return (streams.out ? agent::kStdout : 0) | (streams.err ? agent::kStderr : 0);
}

// The number of workers on this host, over all its tasks: the options name local ranks, which count
// over the tasks of a host as SLURM_LOCALID does.
int workers_here(const Plan& plan) { return plan.task ? plan.task->tasks_here : plan.slots; }

// "n1 has local ranks 0 to 3".
std::string existing_ranks(const Plan& plan) {
    const int all = workers_here(plan);
    return rendezvous::host_of(plan.node_name) + " has local " +
           (all == 1 ? "rank 0" : "ranks 0 to " + std::to_string(all - 1));
}

// Warns about the lowest rank that does not exist. No error: all nodes have one command line, but
// may have different numbers of workers. A rank that is missing here may exist on another node.
void check_ranks(Plan& plan, const char* option, int rank) {
    plan.host_warnings.push_back(std::string(option) + ": no local rank " + std::to_string(rank) +
                                 "; " + existing_ranks(plan));
}

void check_ranks(Plan& plan, const char* option, const StreamsPerRank& streams) {
    const auto beyond = streams.by_rank.lower_bound(workers_here(plan));
    if (beyond != streams.by_rank.end()) check_ranks(plan, option, beyond->first);
}

void plan_ranks(Plan& plan, const Options& options) {
    const std::vector<int>& shown = options.local_ranks_filter;
    // A task has one worker, whose local rank is the number of the task.
    const int first = plan.task ? plan.task->local_id : 0;
    for (int i = first; i < first + plan.slots; ++i)
        plan.workers.output.ranks.push_back(
            {.redirected = bits(options.redirects.of(i)),
             .teed = bits(options.tee.of(i)),
             .shown = shown.empty() || std::ranges::find(shown, i) != shown.end()});
    check_ranks(plan, "--redirects", options.redirects);
    check_ranks(plan, "--tee", options.tee);
    if (!shown.empty() &&
        std::ranges::none_of(shown, [&](int rank) { return rank < workers_here(plan); }))
        plan.host_warnings.push_back(
            "--local-ranks-filter: no listed rank is on this node, so no worker's output goes to "
            "the console; " +
            existing_ranks(plan));
    else if (const auto beyond =
                 std::ranges::find_if(shown, [&](int r) { return r >= workers_here(plan); });
             beyond != shown.end())
        check_ranks(plan, "--local-ranks-filter", *beyond);
}

// The files of the filters count too: they need a folder even if no rank has its own file.
bool any_to_files(const Plan& plan) {
    return !plan.workers.output.filters[0].empty() || !plan.workers.output.filters[1].empty() ||
           std::ranges::any_of(plan.workers.output.ranks, [](const RankOutput& rank) {
               return (rank.redirected | rank.teed) != 0;
           });
}

// A filter reads the lines of --tee that the console gets. Without such a line its file would stay
// empty, and the user would not know why.
void plan_filters(Plan& plan, const Options& options) {
    const auto check = [&](const std::vector<std::string>& filters, int stream, const char* name) {
        if (filters.empty() ||
            std::ranges::any_of(plan.workers.output.ranks, [&](const RankOutput& rank) {
                return rank.shown && (rank.teed & stream) != 0;
            }))
            return;
        plan.warnings.push_back(
            std::string("--duplicate-") + name + "-filters: no " + name +
            " goes to both files and console, so nothing can match; give --tee=" +
            (stream == agent::kStdout ? "1" : "2") + " or 3");
    };
    plan.workers.output.filters[0] = options.stdout_filters;
    plan.workers.output.filters[1] = options.stderr_filters;
    check(options.stdout_filters, agent::kStdout, "stdout");
    check(options.stderr_filters, agent::kStderr, "stderr");
}

void plan_log_dir(Plan& plan, const Options& options, const HostFacts& host) {
    const bool files = any_to_files(plan);
    plan.log_dir = options.log_dir.value_or("");
    // torchrun's way to ask for no files at all.
    if (options.log_dir == "/dev/null") {
        plan.log_dir.clear();
        if (files)
            plan.warnings.push_back(
                "--log-dir=/dev/null: no files are written; all output goes to the console");
        plan.workers.output.filters[0].clear();
        plan.workers.output.filters[1].clear();
        for (RankOutput& rank : plan.workers.output.ranks) rank.redirected = rank.teed = 0;
    } else if (files && plan.log_dir.empty()) {
        // The name that torchrun gives such a folder, so that people and tools find it.
        plan.log_dir = host.temporary_directory + "/torchelastic_" + host.random_id.substr(0, 8);
        plan.notes.push_back("the workers' output goes to files in " + plan.log_dir +
                             "; --log-dir chooses another folder");
    }
}

// torchrun labels only the lines of --tee.
Label label_of(const Plan& plan, const Options& options, const HostFacts& host) {
    if (options.label) return *options.label ? Label::all : Label::none;
    // With one worker in the job each line is known to be its own. A template shows that the user
    // wants prefixes.
    const bool wanted =
        plan.slots > 1 || plan.limits.max_nodes > 1 || !plan.workers.output.prefix_template.empty();
    return wanted && !host.called_as_torchrun ? Label::all : Label::teed;
}

void plan_prefix(Plan& plan, const Options& options, const HostFacts& host) {
    plan.workers.output.prefix_template = options.prefix_template.value_or("");
    // The output of all nodes is usually read in one place, so the label names the host. Who gives
    // a role wants to read that: scripts put the node's number into it.
    if (plan.limits.max_nodes > 1 && !host.called_as_torchrun && !options.role)
        plan.workers.output.host = rendezvous::host_of(plan.node_name);
    plan.workers.output.label = label_of(plan, options, host);
    std::string unknown;
    // Only the names matter here; the values are those of no worker.
    for (const std::string& name :
         unknown_names(plan.workers.output.prefix_template, prefix_values("", 0, 0, "")))
        unknown += (unknown.empty() ? "" : ", ") + name;
    if (!unknown.empty())
        plan.warnings.push_back("--log-line-prefix-template: unknown and left as written: " +
                                unknown + "; use role_name, local_rank, rank or hostname");
}

}  // namespace

void plan_output(Plan& plan, const Options& options, const HostFacts& host) {
    plan_ranks(plan, options);
    plan_filters(plan, options);
    plan_log_dir(plan, options, host);
    plan_prefix(plan, options, host);
    plan.console_overflow = options.console_overflow.value_or(plan.console_overflow);
    plan.pty = options.pty;
    plan.workers.output.collapse =
        options.collapse && !host.called_as_torchrun &&
        std::ranges::count_if(plan.workers.output.ranks, &agent::RankOutput::shown) > 1 &&
        plan.workers.output.label == agent::Label::all &&
        plan.workers.output.prefix_template.empty();
    plan.verbosity = options.verbosity;
    plan.log_times = options.timestamps.value_or(!host.log_at_terminal);
    plan.log_json = options.log_json;
    plan.status_every =
        options.status_every.value_or(host.log_at_terminal ? Duration{} : kStatusEvery);
}

}  // namespace ddprun::launcher
