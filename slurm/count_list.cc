// Parses Slurm's lists of counts.
#include "slurm/count_list.h"

#include <charconv>
#include <optional>
#include <string>

#include "slurm/hostlist.h"

namespace ddprun::slurm {
namespace {

// Slurm stores counts in 32 bits.
constexpr std::int64_t kMostCount = 4294967295;

// Positions in messages count from 1, as people do.
Error wrong_list(const char* what, std::size_t at) {
    return Error(ErrorCode::malformed,
                 std::string(what) + " at character " + std::to_string(at + 1));
}

// Reads the digits at position `at` and moves `at` behind them. Returns nothing when there is no
// digit, or when the number is larger than kMostCount.
std::optional<std::int64_t> read_number(std::string_view text, std::size_t& at) {
    std::int64_t value = 0;
    auto [end, failure] = std::from_chars(text.data() + at, text.data() + text.size(), value);
    // std::from_chars would accept a minus sign, so the first character is checked.
    bool digit = at < text.size() && text[at] >= '0' && text[at] <= '9';
    if (!digit || failure != std::errc() || value > kMostCount) return std::nullopt;
    at = static_cast<std::size_t>(end - text.data());
    return value;
}

// Reads `(xN)` at position `at`. Without parentheses the count stands for one node.
Result<std::int64_t> read_repetition(std::string_view text, std::size_t& at) {
    if (at >= text.size() || text[at] != '(') return std::int64_t{1};
    if (text.substr(at, 2) != "(x") return wrong_list("not a repetition like (x2)", at);
    std::size_t digits = at + 2;
    auto times = read_number(text, digits);
    if (!times || *times == 0 || digits >= text.size() || text[digits] != ')')
        return wrong_list("not a repetition like (x2)", at);
    at = digits + 1;
    return *times;
}

}  // namespace

Result<std::vector<std::int64_t>> expand_count_list(std::string_view text) {
    std::vector<std::int64_t> counts;
    for (std::size_t at = 0;; ++at) {
        auto count = read_number(text, at);
        if (!count) return wrong_list("not a count", at);
        std::size_t repetition_at = at;
        auto times = read_repetition(text, at);
        if (!times) return times.error();
        // The limit is checked before memory is allocated: `1(x4000000000)` is a short text.
        if (counts.size() + static_cast<std::size_t>(*times) > kMostHosts)
            return wrong_list("counts of more than 262144 nodes", repetition_at);
        counts.insert(counts.end(), static_cast<std::size_t>(*times), *count);
        if (at == text.size()) return counts;
        if (text[at] != ',') return wrong_list("not a count", at);
    }
}

}  // namespace ddprun::slurm
