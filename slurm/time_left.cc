// Parses the times that squeue prints.
#include "slurm/time_left.h"

#include <algorithm>
#include <charconv>

namespace ddprun::slurm {
namespace {

// The largest number that is accepted: in seconds, three years. It keeps the arithmetic below far
// from overflow.
constexpr long kMost = 100'000'000;

// Reads one number at the front of `text`, up to `end` or the end of the text, and removes both.
// Returns -1 when there is no valid number.
long take(std::string_view& text, char end) {
    const std::size_t at = text.find(end);
    const std::string_view digits = text.substr(0, at);
    long value = -1;
    const auto [last, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || last != digits.data() + digits.size() || value < 0 || value > kMost)
        return -1;
    text.remove_prefix(std::min(at == std::string_view::npos ? at : at + 1, text.size()));
    return value;
}

// Returns the first word and removes it, with the blanks around it, from `line`.
std::string_view take_word(std::string_view& line) {
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    const std::string_view word = line.substr(0, line.find(' '));
    line.remove_prefix(word.size());
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    return word;
}

std::optional<std::chrono::seconds> read_time(std::string_view line) {
    if (line == "UNLIMITED") return kNoLimit;
    // The form is [days-][hours:]minutes:seconds. The number of colons tells which parts are there.
    // A missing part counts as 0; -1 marks an error.
    const long days = line.find('-') == std::string_view::npos ? 0 : take(line, '-');
    const auto colons = std::count(line.begin(), line.end(), ':');
    const long hours = colons == 2 ? take(line, ':') : 0;
    const long minutes = colons == 1 || colons == 2 ? take(line, ':') : -1;
    const long seconds = take(line, ':');
    if (days < 0 || hours < 0 || minutes < 0 || seconds < 0 || !line.empty()) return std::nullopt;
    return std::chrono::seconds(((days * 24 + hours) * 60 + minutes) * 60 + seconds);
}

// Calls `look` with each line of a text.
template <class Look>
void each_line(std::string_view text, const Look& look) {
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        look(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
}

}  // namespace

std::optional<ListedJob> find_listed(std::string_view text, const JobId& job) {
    std::optional<ListedJob> found;
    each_line(text, [&](std::string_view line) {
        const std::string_view number = take_word(line), id = take_word(line);
        const auto left = read_time(take_word(line));
        if (!left || !line.empty() || !(job.is(number) || job.is(id))) return;
        // Slurm prints 8812+1 for a part of a heterogeneous job.
        const std::string spelled(id.substr(0, id.find('+')));
        if (!found || *left < found->left) found = ListedJob{JobId(job.number(), spelled), *left};
    });
    return found;
}

std::chrono::seconds step_time_left(std::string_view text, const JobId& job,
                                    std::string_view step) {
    auto left = kNoLimit;
    each_line(text, [&](std::string_view line) {
        const std::string_view name = take_word(line);
        const std::size_t dot = std::min(name.rfind('.'), name.size());
        if (!job.is(name.substr(0, dot)) || name.substr(dot) != "." + std::string(step)) return;
        const auto limit = read_time(take_word(line)), used = read_time(take_word(line));
        if (!limit || !used || *limit == kNoLimit) return;
        left = std::max(*limit - *used, std::chrono::seconds{});
    });
    return left;
}

}  // namespace ddprun::slurm
