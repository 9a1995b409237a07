// Formats a number in lower-case hexadecimal, padded with zeros on the left. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace ddprun {

// The result has exactly `digits` characters. Higher digits of a larger number are cut off.
inline std::string hexadecimal(std::uint64_t number, int digits = 16) {
    std::string text(static_cast<std::size_t>(digits), '0');
    for (auto digit = text.rbegin(); digit != text.rend(); ++digit, number >>= 4)
        *digit = "0123456789abcdef"[number & 15];
    return text;
}

}  // namespace ddprun
