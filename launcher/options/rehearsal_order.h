// The order of a rehearsal, as the words that rehearsal/program/main.py reads. Pure.
#pragma once

#include <string>
#include <vector>

#include "launcher/options/options.h"

namespace ddprun::launcher {

// `ddprun`: this program. The options of the command line are passed on, except those about other
// nodes. Variables and configuration files reach the jobs by themselves.
std::vector<std::string> rehearsal_order(const Options& options, const std::string& ddprun);

}  // namespace ddprun::launcher
