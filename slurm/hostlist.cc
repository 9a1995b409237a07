// Expands Slurm's compressed host lists and folds names into such lists.
#include "slurm/hostlist.h"

#include <charconv>
#include <cstdint>
#include <optional>

namespace ddprun::slurm {
namespace {

// Numbers of at most 18 digits fit into 64 bits, also after an addition.
constexpr std::size_t kMostDigits = 18;
constexpr std::size_t kMostBrackets = 16;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_separator(char c) { return c == ',' || c == ' ' || c == '\t' || c == '\n'; }
// Characters of host names and addresses. Everything else is rejected, so a variable with other
// content gets an error and does not become a strange host name.
bool is_name_character(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.' || c == ':';
}

std::string padded(std::uint64_t value, std::size_t width) {
    std::string digits = std::to_string(value);
    return digits.size() < width ? std::string(width - digits.size(), '0') + digits : digits;
}

std::uint64_t number(std::string_view digits) {
    std::uint64_t value = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return value;
}

// A name whose brackets are not multiplied out yet: text, choices, text, choices, …, text.
// texts.size() is choices.size() + 1.
struct Pattern {
    std::vector<std::string> texts{""};
    std::vector<std::vector<std::string>> choices;
};

// Reads the text once, from left to right. at_ is the position; errors name a position.
class Expander {
  public:
    explicit Expander(std::string_view text) : text_(text) {}

    Result<std::vector<std::string>> run() {
        while (at_ < text_.size()) {
            if (is_separator(text_[at_])) {
                ++at_;
                continue;
            }
            auto pattern = read_pattern();
            if (!pattern) return pattern.error();
            if (auto error = multiply_out(*pattern)) return *error;
        }
        if (hosts_.empty()) return Error(ErrorCode::malformed, "the host list is empty");
        return std::move(hosts_);
    }

  private:
    Error wrong(const char* what, std::size_t at) const {
        return Error(ErrorCode::malformed,
                     std::string(what) + " at character " + std::to_string(at + 1));
    }

    // Reads up to the next separator. Separators inside brackets belong to the bracket.
    Result<Pattern> read_pattern() {
        Pattern pattern;
        name_start_ = at_;
        while (at_ < text_.size() && !is_separator(text_[at_])) {
            char c = text_[at_];
            if (c == '[') {
                if (pattern.choices.size() == kMostBrackets) return wrong("too many brackets", at_);
                auto numbers = read_bracket();
                if (!numbers) return numbers.error();
                pattern.choices.push_back(std::move(*numbers));
                pattern.texts.emplace_back();
                continue;
            }
            if (c == ']') return wrong("']' without '['", at_);
            if (!is_name_character(c)) return wrong("not a character of a host name", at_);
            pattern.texts.back() += c;
            ++at_;
        }
        return pattern;
    }

    // Reads the ranges between '[' and ']'. at_ is at the '['. A missing ']' is reported at the
    // '[', where the user can see what is open.
    Result<std::vector<std::string>> read_bracket() {
        std::size_t open = at_++;
        std::vector<std::string> numbers;
        for (;;) {
            if (auto error = read_range(numbers, open)) return *error;
            if (at_ == text_.size()) return wrong("'[' without ']'", open);
            char c = text_[at_];
            if (c != ',' && c != ']') return wrong("not a host range", at_);
            ++at_;
            if (c == ']') return numbers;
        }
    }

    // Reads `low` or `low-high` and appends its numbers, padded to the width of `low`.
    std::optional<Error> read_range(std::vector<std::string>& numbers, std::size_t open) {
        std::size_t low_at = at_;
        std::string_view low = read_digits();
        if (at_ == text_.size() && low.empty()) return wrong("'[' without ']'", open);
        if (low.empty()) return wrong("not a host range", at_);
        std::string_view high = low;
        std::size_t high_at = low_at;
        if (at_ < text_.size() && text_[at_] == '-') {
            high_at = ++at_;
            high = read_digits();
            if (high.empty()) return wrong("not a host range", at_);
        }
        if (low.size() > kMostDigits) return wrong("number too long", low_at);
        if (high.size() > kMostDigits) return wrong("number too long", high_at);
        // Digits may continue with another character, as in "3x". The error then points to that
        // character, not to the range.
        if (at_ < text_.size() && text_[at_] != ',' && text_[at_] != ']')
            return wrong("not a host range", at_);
        std::uint64_t from = number(low), to = number(high);
        if (to < from) return wrong("a descending range", high_at);
        // Limits are checked before the numbers are made: a short text must not take much memory.
        if (to - from >= kMostHostsInRange)
            return wrong("a range of more than 65536 hosts", low_at);
        if (numbers.size() + (to - from) >= kMostHosts)
            return wrong("more than 262144 hosts", low_at);
        for (std::uint64_t value = from; value <= to; ++value)
            numbers.push_back(padded(value, low.size()));
        return std::nullopt;
    }

    std::string_view read_digits() {
        std::size_t start = at_;
        while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
        return text_.substr(start, at_ - start);
    }

    // Appends all names of a pattern to hosts_, after a check of their number and length.
    std::optional<Error> multiply_out(const Pattern& pattern) {
        std::size_t count = 1;
        for (const auto& numbers : pattern.choices) {
            // Both factors are at most 2^18 here, so the product cannot overflow before the check.
            count *= numbers.size();
            if (count > kMostHosts) break;
        }
        if (hosts_.size() + count > kMostHosts) return wrong("more than 262144 hosts", name_start_);
        // The number of bytes is limited, too: the text around a bracket is repeated for each of
        // its numbers. 255 is the longest name that DNS allows.
        constexpr std::size_t kMostNameLength = 255;
        std::size_t length = 0;
        for (const auto& text : pattern.texts) length += text.size();
        for (const auto& numbers : pattern.choices) length += numbers.back().size();
        if (length > kMostNameLength)
            return wrong("a host name of more than 255 characters", name_start_);
        for (std::size_t i = 0; i < count; ++i) hosts_.push_back(name_at(pattern, i));
        return std::nullopt;
    }

    // Slurm's order, as in an odometer with numbered wheels: the last bracket changes fastest, then
    // the first, then the second, and so on.
    static std::string name_at(const Pattern& pattern, std::size_t i) {
        std::size_t brackets = pattern.choices.size();
        std::vector<std::size_t> digit(brackets);
        for (std::size_t speed = 0; speed < brackets; ++speed) {
            std::size_t b = speed == 0 ? brackets - 1 : speed - 1;
            digit[b] = i % pattern.choices[b].size();
            i /= pattern.choices[b].size();
        }
        std::string name = pattern.texts[0];
        for (std::size_t b = 0; b < brackets; ++b)
            name += pattern.choices[b][digit[b]] + pattern.texts[b + 1];
        return name;
    }

    std::string_view text_;
    std::size_t at_ = 0, name_start_ = 0;
    std::vector<std::string> hosts_;
};

// A name, split around its last number. `digits` is empty when there is no number, or when it is
// too long to calculate with.
struct Cut {
    std::string_view before, digits, after;
};

Cut cut(std::string_view name) {
    std::size_t end = name.size();
    while (end > 0 && !is_digit(name[end - 1])) --end;
    std::size_t start = end;
    while (start > 0 && is_digit(name[start - 1])) --start;
    if (end == start || end - start > kMostDigits) return {name, {}, {}};
    return {name.substr(0, start), name.substr(start, end - start), name.substr(end)};
}

}  // namespace

Result<std::vector<std::string>> expand_hostlist(std::string_view expression) {
    return Expander(expression).run();
}

// Two loops: the outer one starts a new bracket, the inner one adds ranges to it while the text
// around the number stays the same.
std::string fold_hostlist(const std::vector<std::string>& names) {
    std::string folded;
    for (std::size_t i = 0; i < names.size();) {
        Cut first = cut(names[i]);
        std::string ranges;
        std::size_t members = 0;
        while (i < names.size()) {
            Cut low = cut(names[i]);
            if (members > 0 &&
                (low.digits.empty() || low.before != first.before || low.after != first.after))
                break;
            // Extends the range while the next name has the next number, written with the width of
            // the first one. expand_hostlist() writes it with the same width.
            std::uint64_t high = number(low.digits);
            std::size_t length = 1;
            while (!low.digits.empty() && i + length < names.size()) {
                Cut next = cut(names[i + length]);
                bool follows = next.before == low.before && next.after == low.after &&
                               next.digits == padded(high + 1, low.digits.size());
                if (!follows) break;
                ++high, ++length;
            }
            if (!ranges.empty()) ranges += ',';
            ranges += low.digits;
            if (length > 1) ranges += '-' + padded(high, low.digits.size());
            members += length, i += length;
            // A name without a number cannot share a bracket.
            if (low.digits.empty()) break;
        }
        if (!folded.empty()) folded += ',';
        folded += first.before;
        folded += members > 1 ? '[' + ranges + ']' : ranges;
        folded += first.after;
    }
    return folded;
}

}  // namespace ddprun::slurm
