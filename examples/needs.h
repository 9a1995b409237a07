// Options that have an effect only beside others, as a table: a worker program refuses the others
// instead of ignoring them. Pure, but for the place in the job.
//
// Errors: usage, one line that names the option.
#pragma once

#include <functional>
#include <initializer_list>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "trainer/worker/context.h"

namespace example {

// The option has an effect where `holds` is true. `where` says where it has none, as in "without
// --snapshot-dir".
template <class Options>
struct Need {
    std::string option;
    std::function<bool(const Options&)> holds;
    std::string where;
};

template <class Options>
using Needs = std::vector<Need<Options>>;

// Several options with one need.
template <class Options>
void add_needs(Needs<Options>& needs, std::initializer_list<const char*> options,
               const std::function<bool(const Options&)>& holds, const std::string& where) {
    for (const char* option : options) needs.push_back({option, holds, where});
}

// Of the options that all the programs here have.
template <class Options>
Needs<Options> common_needs() {
    Needs<Options> needs;
    const auto saves = [](const Options& o) { return !o.snapshot_dir.empty(); };
    const auto crashes = [](const Options& o) { return o.crash_at_step >= 0; };
    const auto gets_there = [](const Options& o) {
        return o.steps < 0 || o.crash_at_step < o.steps;
    };
    add_needs<Options>(needs, {"--snapshot-every", "--snapshot-keep"}, saves,
                       "without --snapshot-dir");
    add_needs<Options>(needs, {"--crash-rank", "--crash-signal", "--crash-exit"}, crashes,
                       "without --crash-at-step");
    add_needs<Options>(needs, {"--crash-at-step"}, gets_there, "at or after the last of --steps");
    return needs;
}

// `given`: the names on the command line.
template <class Options>
ddprun::Result<void> check_needs(const Needs<Options>& needs, const std::set<std::string>& given,
                                 const Options& options) {
    for (const auto& [option, holds, where] : needs)
        if (given.contains(option) && !holds(options))
            return ddprun::usage_error(option + " has no effect " + where);
    return {};
}

// A rank that is to crash must be there. Only the first generation crashes; a later one may be
// smaller.
template <class Options>
ddprun::Result<void> check_crash_rank(const Options& options,
                                      const ddprun::trainer::Context& context) {
    if (options.crash_at_step < 0 || context.generation.value != 0 ||
        options.crash_rank < context.world_size)
        return {};
    return ddprun::usage_error("--crash-rank " + std::to_string(options.crash_rank) +
                               " is none of the ranks 0 to " +
                               std::to_string(context.world_size - 1));
}

}  // namespace example
