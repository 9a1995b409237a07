// Numbers folded to ranges: "0-3,6". Pure.
#pragma once

#include <string>
#include <vector>

namespace ddprun {

// `numbers` ascend.
std::string number_ranges(const std::vector<int>& numbers);

}  // namespace ddprun
