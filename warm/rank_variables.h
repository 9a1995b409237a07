// The variables that differ between the workers of a job, or from one generation to the next. Pure.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace ddprun::agent::warm {

// What is known to differ, and what differs between these environments ("NAME=value" each). A
// module that reads one of them while it is imported is not imported in the server.
std::set<std::string> rank_variables(const std::vector<std::vector<std::string>>& environments);

// The environment without them.
std::vector<std::string> without(const std::vector<std::string>& environment,
                                 const std::set<std::string>& names);

}  // namespace ddprun::agent::warm
