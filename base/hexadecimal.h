// Formats numbers and bytes in lower-case hexadecimal. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ddprun {

// Padded with zeros on the left: the result has exactly `digits` characters. Higher digits of a
// larger number are cut off.
inline std::string hexadecimal(std::uint64_t number, int digits = 16) {
    std::string text(static_cast<std::size_t>(digits), '0');
    for (auto digit = text.rbegin(); digit != text.rend(); ++digit, number >>= 4)
        *digit = "0123456789abcdef"[number & 15];
    return text;
}

// Two digits for each byte.
inline std::string hexadecimal_of(std::string_view bytes) {
    std::string text;
    for (const char byte : bytes) text += hexadecimal(static_cast<unsigned char>(byte), 2);
    return text;
}

}  // namespace ddprun
