// Splits what a worker reports into lines, and reads their numbers.
#include "agent/workers/progress_lines.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <sstream>
#include <utility>

namespace ddprun::agent {
namespace {

// Milliseconds: one day. The program may write any number.
constexpr std::int64_t kLongestSnapshot = 86'400'000;
// Of all snapshots of a process: ten years.
constexpr std::int64_t kLongestSavingTime = 3660 * kLongestSnapshot;
// The largest integers that all JSON readers represent exactly.
constexpr std::int64_t kLargestStep = std::int64_t{1} << 53;

// Returns the number of "NAME=number" in a line, or -1. A number that is too large also gives -1:
// the leader would reject the whole message as malformed and close the connection of this node.
std::int64_t field(const std::string& line, const std::string& name) {
    const auto at = line.find(name + "=");
    std::int64_t value = -1;
    if (at != std::string::npos && (at == 0 || line[at - 1] == ' '))
        std::from_chars(line.data() + at + name.size() + 1, line.data() + line.size(), value);
    return value > kLargestStep ? -1 : std::max<std::int64_t>(value, -1);
}

// The first word "NAME=VALUE" whose value is not a number or infinite, as Python, C++ and
// JavaScript print it. The name is one that can be printed: letters, digits and a few signs.
std::string not_finite_in(const std::string& line) {
    static constexpr std::string_view kValues[] = {"nan",  "-nan", "NaN",      "inf",
                                                   "-inf", "+inf", "Infinity", "-Infinity"};
    constexpr std::size_t kLongestName = 64;
    std::istringstream words(line);
    for (std::string word; words >> word;) {
        const std::size_t equals = word.find('=');
        if (equals == std::string::npos || equals == 0 || equals > kLongestName) continue;
        const std::string_view value = std::string_view(word).substr(equals + 1);
        const bool printable = std::all_of(
            word.begin(), word.begin() + static_cast<long>(equals), [](unsigned char letter) {
                return std::isalnum(letter) != 0 ||
                       std::string_view("_./-").find(static_cast<char>(letter)) !=
                           std::string_view::npos;
            });
        if (printable && std::ranges::count(kValues, value) > 0) return word;
    }
    return {};
}

ProgressReport report_of(const std::string& line) {
    const std::int64_t took = field(line, "snapshot_ms");
    const std::int64_t saving = field(line, "saving_ms");
    const std::int64_t calls_at = std::max<std::int64_t>(field(line, "ddprun_calls"), 0);
    return {field(line, "step"),
            field(line, "snapshot"),
            std::chrono::milliseconds(std::clamp<std::int64_t>(took, 0, kLongestSnapshot)),
            static_cast<std::uint64_t>(calls_at),
            calls_at > 0 ? field(line, "pid") : 0,
            not_finite_in(line),
            saving < 0 ? Duration{-1}
                       : std::chrono::milliseconds(std::min(saving, kLongestSavingTime))};
}

}  // namespace

void SavingTime::hear(const ProgressReport& report) {
    if (report.saving >= Duration{}) {
        if (!std::exchange(tells_itself_, true)) all_ = {};
        all_ = std::max(all_, report.saving);
    } else if (!tells_itself_ && report.snapshot > counted_ && report.snapshot_took > Duration{}) {
        counted_ = report.snapshot;
        all_ += report.snapshot_took;
    }
}

std::vector<ProgressReport> ProgressLines::take(std::string_view bytes) {
    std::vector<ProgressReport> reports;
    held_.append(bytes);
    std::size_t begin = 0;
    for (std::size_t end; (end = held_.find('\n', begin)) != std::string::npos; begin = end + 1) {
        // This is the end of a line whose beginning was thrown away.
        if (std::exchange(skipping_, false)) continue;
        reports.push_back(report_of(held_.substr(begin, end - begin)));
    }
    // Once for all lines: a worker may write thousands of empty ones at once.
    held_.erase(0, begin);
    if (held_.size() >= kLongest) {
        held_.clear();
        skipping_ = true;
    }
    return reports;
}

}  // namespace ddprun::agent
