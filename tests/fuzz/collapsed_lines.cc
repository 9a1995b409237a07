// Fuzz target: what many ranks print, as one line each. Taken apart again, it is what each rank has
// printed, line by line; no line is held longer than the window; nothing stays.
//
// Each pair of bytes of the input is a step: a rank, and a line or a time that passes.
#include "agent/output/collapsed_lines.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using namespace ddprun;
using ddprun::agent::CollapsedLines;

constexpr std::size_t kRanks = 5;

void require(bool holds) {
    if (!holds) std::abort();
}

// "0,2,3|", which no line begins with.
std::string label(const std::vector<std::size_t>& indexes) {
    std::string text;
    for (const std::size_t index : indexes)
        text += (text.empty() ? "" : ",") + std::to_string(index);
    return text + "|";
}

// Gives each rank its lines back.
void expand(std::string_view printed, std::vector<std::vector<std::string>>& of) {
    while (!printed.empty()) {
        std::string_view line = printed.substr(0, printed.find('\n'));
        printed.remove_prefix(line.size() + 1);
        const std::string_view ranks = line.substr(0, line.find('|'));
        line.remove_prefix(ranks.size() + 1);
        constexpr std::string_view kAny = "[rank*]: ";
        const bool is_tagged = ranks.size() > 1 && line.starts_with(kAny);
        if (is_tagged) line.remove_prefix(kAny.size());
        for (const char c : ranks)
            if (c != ',') {
                const std::string tag = is_tagged ? std::string("[rank") + c + "]: " : "";
                of[static_cast<std::size_t>(c - '0')].push_back(tag + std::string(line));
            }
    }
}

// Few lines, so that they are often equal.
std::string line_of(std::size_t rank, std::uint8_t what) {
    const std::string text =
        what % 4 == 3 ? "own " + std::to_string(rank) : "line " + std::to_string(what % 8);
    switch (what / 8 % 5) {
        case 0:
            return "[rank" + std::to_string(rank) + "]: " + text;
        case 1:
            return "[rank" + std::to_string((rank + 1) % kRanks) + "]: " + text;
        case 2:
            return "[rank*]: " + text;
        case 3:
            return "";
        default:
            return text;
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    CollapsedLines lines({0, 1, 2, 3, 4}, label);
    std::vector<std::vector<std::string>> wanted(kRanks), found(kRanks);
    Time now{std::chrono::hours{1}};
    for (std::size_t i = 0; i + 1 < size; i += 2) {
        const std::size_t rank = data[i] % kRanks;
        const std::uint8_t what = data[i + 1];
        if (what >= 240) {
            now += std::chrono::milliseconds{what - 240} * 10;
            expand(lines.ready(now), found);
            require(lines.next() == kNever ||
                    (lines.next() > now && lines.next() - now <= CollapsedLines::kWindow));
        } else if (what >= 232) {
            lines.release(rank);
            expand(lines.ready(now), found);
            require(found[rank] == wanted[rank]);
        } else {
            wanted[rank].push_back(line_of(rank, what));
            lines.take(rank, wanted[rank].back(), now);
        }
    }
    lines.release_all();
    expand(lines.ready(now), found);
    require(found == wanted && lines.next() == kNever);
    return 0;
}
