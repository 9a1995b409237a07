// Fuzz target: what a worker writes to its progress descriptor, any bytes in any pieces. Numbers
// must be within what a message can carry, and as long as no line is too long to be kept, the
// pieces must not matter.
//
// The first byte of the input is the size of the pieces.
#include "agent/workers/progress_lines.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace {

using namespace ddprun::agent;

void require(bool holds) {
    if (!holds) std::abort();
}

std::vector<ProgressReport> read(std::string_view bytes, std::size_t piece) {
    ProgressLines lines;
    std::vector<ProgressReport> all;
    while (!bytes.empty()) {
        for (const ProgressReport& report : lines.take(bytes.substr(0, piece))) {
            require(report.step >= -1 && report.step <= std::int64_t{1} << 53);
            require(report.snapshot >= -1 && report.snapshot <= std::int64_t{1} << 53);
            require(report.snapshot_took >= ddprun::Duration{} &&
                    report.snapshot_took <= std::chrono::hours{24});
            all.push_back(report);
        }
        bytes.remove_prefix(std::min(piece, bytes.size()));
    }
    return all;
}

bool same(const ProgressReport& one, const ProgressReport& other) {
    return one.step == other.step && one.snapshot == other.snapshot &&
           one.snapshot_took == other.snapshot_took;
}

// Whether every line, also the unfinished one, fits with the largest piece behind it.
bool all_are_short(std::string_view bytes) {
    while (!bytes.empty()) {
        const std::size_t end = std::min(bytes.find('\n'), bytes.size());
        if (end + 256 >= ProgressLines::kLongest) return false;
        bytes.remove_prefix(std::min(end + 1, bytes.size()));
    }
    return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
    const auto whole = read(bytes, bytes.size() + 1);
    const auto pieces = read(bytes, data[0] + std::size_t{1});
    require(whole.size() <= static_cast<std::size_t>(std::ranges::count(bytes, '\n')));
    if (all_are_short(bytes)) require(std::ranges::equal(whole, pieces, same));
    return 0;
}
