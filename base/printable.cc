// Finds what a line must not contain, character by character.
#include "base/printable.h"

#include <cstdio>

namespace ddprun {
namespace {

// One character: its code point and its size in bytes. Size 0: the byte is no UTF-8.
struct Character {
    char32_t code = 0;
    std::size_t size = 0;
};

Character first_of(std::string_view text) {
    const auto byte = [&text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    if (byte(0) < 0x80) return {byte(0), 1};
    const std::size_t size = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : byte(0) >= 0xc2 ? 2 : 0;
    if (size == 0 || byte(0) > 0xf4 || size > text.size()) return {};
    char32_t code = byte(0) & (0xff >> (size + 1));
    for (std::size_t i = 1; i < size; ++i) {
        if ((byte(i) & 0xc0) != 0x80) return {};
        code = code << 6 | (byte(i) & 0x3f);
    }
    // Longer than necessary, half of a pair, or beyond Unicode.
    constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
    if (code < kLeast[size] || (code >= 0xd800 && code < 0xe000) || code > 0x10ffff) return {};
    return {code, size};
}

bool turns_direction(char32_t code) {
    return (code >= 0x200e && code <= 0x200f) || (code >= 0x202a && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069);
}

bool is_safe(char32_t code) {
    const bool control = code < 0x20 || (code >= 0x7f && code < 0xa0);
    const bool line_end = code == 0x2028 || code == 0x2029;
    return code == '\t' || (!control && !line_end && !turns_direction(code));
}

std::string escaped(char32_t code) {
    if (code == '\n') return "\\n";
    if (code == '\r') return "\\r";
    char text[16];
    std::snprintf(text, sizeof text, code < 0x100 ? "\\x%02x" : "\\u%04x",
                  static_cast<unsigned>(code));
    return text;
}

// The size of a colour at the start of the text; 0: there is none.
std::size_t colour(std::string_view text) {
    if (!text.starts_with("\x1b[")) return 0;
    const std::size_t end = text.find_first_not_of("0123456789;", 2);
    return end != std::string_view::npos && text[end] == 'm' ? end + 1 : 0;
}

}  // namespace

std::string printable(std::string_view text) {
    std::string line;
    line.reserve(text.size());
    while (!text.empty()) {
        if (const std::size_t size = colour(text)) {
            text.remove_prefix(size);
            continue;
        }
        const Character next = first_of(text);
        if (next.size == 0)
            line += escaped(static_cast<unsigned char>(text.front()));
        else if (is_safe(next.code))
            line += text.substr(0, next.size);
        else
            line += escaped(next.code);
        text.remove_prefix(next.size == 0 ? 1 : next.size);
    }
    return line;
}

}  // namespace ddprun
