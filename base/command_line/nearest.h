// Finds the name that was probably meant by one that does not exist. Pure.
#pragma once

#include <span>
#include <string_view>

namespace ddprun::launcher {

// Returns the name with the smallest edit distance (a letter too many, missing, wrong, or two
// swapped), or an empty text if none is within a third of the letters (or one letter). Of several
// equally close names the longest wins, because people leave a letter out more often than they type
// a wrong one; then the first.
std::string_view nearest(std::string_view given, std::span<const std::string_view> names);

}  // namespace ddprun::launcher
