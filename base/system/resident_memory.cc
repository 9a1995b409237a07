// Reads the second number of statm (proc(5)): pages. No descriptor stays open for it: a limit of
// open files leaves few.
#include "base/system/resident_memory.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <system_error>

#include "base/system/small_file.h"

namespace ddprun {
namespace {

constexpr auto kLooksEach = std::chrono::seconds{5};

}  // namespace

std::int64_t resident_memory() {
    const std::string text = read_small_file("/proc/self/statm");
    // Not by sscanf(), which is seldom used (locked_program.h), and this is read by the loop.
    std::int64_t pages = 0;
    const char* const end = text.data() + text.size();
    const char* const second = std::find(text.data(), end, ' ');
    if (second == end || std::from_chars(second + 1, end, pages).ec != std::errc()) return 0;
    return pages * ::sysconf(_SC_PAGESIZE);
}

std::int64_t MemoryGauge::read(Time now) {
    if (looked_at_ && now - *looked_at_ < kLooksEach) return bytes_;
    looked_at_ = now;
    return bytes_ = resident_memory();
}

}  // namespace ddprun
