#include "launcher/options/rehearsal_order.h"

#include <algorithm>
#include <string_view>

#include "base/command_line/option_row.h"

namespace ddprun::launcher {
namespace {

// A rehearsal plays on one node.
constexpr std::string_view kOfOtherNodes[] = {
    "nnodes",  "node-rank",   "standalone",  "rdzv-backend", "rdzv-endpoint",
    "rdzv-id", "master-addr", "master-port", "local-addr",   "interface"};

bool passed_on(const OptionOrigin& one) {
    return one.source == OptionSource::command_line && !one.row->name.starts_with("rehearse") &&
           std::ranges::find(kOfOtherNodes, one.row->name) == std::end(kOfOtherNodes);
}

std::string word_of(const OptionOrigin& one) {
    const std::string name = "--" + std::string(one.row->name);
    return one.row->placeholder.empty() ? name : name + "=" + one.value;
}

}  // namespace

std::vector<std::string> rehearsal_order(const Options& options, const std::string& ddprun) {
    const RehearsalOptions& asked = options.rehearsal;
    std::string faults;
    for (const std::string& fault : asked.faults) faults += (faults.empty() ? "" : ",") + fault;
    std::vector<std::string> words{"--ddprun=" + ddprun, "--faults=" + faults,
                                   "--steps=" + std::to_string(asked.steps),
                                   "--pattern=" + asked.pattern, "--format=" + asked.format};
    if (asked.seed) words.push_back("--seed=" + std::to_string(*asked.seed));
    if (options.hang_timeout || options.hang_auto) words.push_back("--hang-timeout-given");
    for (const OptionOrigin& one : options.origins)
        if (passed_on(one)) words.push_back("--option=" + word_of(one));
    // --max-restarts=auto does not restart a program that crashes early, and here that is planned.
    if (!options.max_restarts || *options.max_restarts < 0)
        words.push_back("--option=--max-restarts=3");
    words.push_back("--");
    words.push_back(options.program);
    words.insert(words.end(), options.arguments.begin(), options.arguments.end());
    return words;
}

}  // namespace ddprun::launcher
