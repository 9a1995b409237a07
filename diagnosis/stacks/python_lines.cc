// The three kinds of line tables.
#include "diagnosis/stacks/python_lines.h"

namespace ddprun::agent {
namespace {

// Bytes of one instruction.
constexpr std::int64_t kUnit = 2;

std::uint8_t unsigned_at(std::string_view table, std::size_t i) {
    return static_cast<std::uint8_t>(table[i]);
}
std::int8_t signed_at(std::string_view table, std::size_t i) {
    return static_cast<std::int8_t>(table[i]);
}

// Pairs: so many bytes further, so many lines further.
std::int64_t by_lnotab(std::string_view table, std::int64_t line, std::int64_t offset) {
    std::int64_t at = 0;
    for (std::size_t i = 0; i + 1 < table.size(); i += 2) {
        at += unsigned_at(table, i);
        if (at > offset) break;
        line += signed_at(table, i + 1);
    }
    return line;
}

// Pairs: length of a range in bytes, and its line compared with that of the range before.
std::int64_t by_ranges(std::string_view table, std::int64_t line, std::int64_t offset) {
    constexpr std::int8_t kNoLine = -128;
    std::int64_t end = 0;
    for (std::size_t i = 0; i + 1 < table.size(); i += 2) {
        end += unsigned_at(table, i);
        const std::int8_t more = signed_at(table, i + 1);
        if (more != kNoLine) line += more;
        if (offset < end) return more == kNoLine ? 0 : line;
    }
    return 0;
}

// A number in groups of six bits, the lowest first; bit 6 says that another group follows. The
// lowest bit of the number is its sign.
std::int64_t signed_number(std::string_view table, std::size_t i) {
    std::uint64_t value = 0;
    for (unsigned shift = 0; i < table.size() && shift < 36; ++i, shift += 6) {
        value |= (std::uint64_t{unsigned_at(table, i)} & 0x3f) << shift;
        if (!(unsigned_at(table, i) & 0x40)) break;
    }
    const auto size = static_cast<std::int64_t>(value >> 1);
    return value & 1 ? -size : size;
}

// Entries of several bytes. The first byte has the highest bit set, and says what kind of entry it
// is and for how many instructions it holds.
std::int64_t by_locations(std::string_view table, std::int64_t line, std::int64_t offset) {
    constexpr unsigned kNone = 15, kLong = 14, kNoColumns = 13, kOneLine0 = 10;
    std::int64_t end = 0;
    for (std::size_t i = 0; i < table.size();) {
        const unsigned first = unsigned_at(table, i), kind = first >> 3 & 15;
        end += ((first & 7) + 1) * kUnit;
        if (kind == kLong || kind == kNoColumns)
            line += signed_number(table, i + 1);
        else if (kind >= kOneLine0 && kind != kNone)
            line += kind - kOneLine0;
        if (offset < end) return kind == kNone ? 0 : line;
        for (++i; i < table.size() && !(unsigned_at(table, i) & 0x80);) ++i;
    }
    return 0;
}

std::int64_t line_in(LineTable kind, std::string_view table, std::int64_t line,
                     std::int64_t offset) {
    switch (kind) {
        case LineTable::lnotab:
            return by_lnotab(table, line, offset);
        case LineTable::ranges:
            return by_ranges(table, line, offset);
        case LineTable::locations:
            return by_locations(table, line, offset);
    }
    return 0;
}

}  // namespace

int python_line(LineTable kind, std::string_view table, int first_line, std::int64_t offset) {
    const std::int64_t line = line_in(kind, table, first_line, offset);
    return line > 0 && line < INT32_MAX ? static_cast<int>(line) : 0;
}

}  // namespace ddprun::agent
