// Which of some names was meant by one that is none of them. Pure.
#pragma once

#include <span>
#include <string_view>

namespace ddprun::launcher {

// The name that is fewest slips away (a letter too many, missing, wrong, or two swapped); of equals
// the longest, for a letter is left out more often than mistaken, and the first of these; empty if
// none is nearer than a third of the letters.
std::string_view nearest(std::string_view given, std::span<const std::string_view> names);

}  // namespace ddprun::launcher
