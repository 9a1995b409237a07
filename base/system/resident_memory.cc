// Reads the second number of statm (proc(5)): pages. No descriptor stays open for it: a limit of
// open files leaves few.
#include "base/system/resident_memory.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "base/system/small_file.h"

namespace ddprun {
namespace {

constexpr auto kLooksEach = std::chrono::seconds{5};

}  // namespace

std::int64_t resident_memory() {
    const std::string text = read_small_file("/proc/self/statm");
    long long total = 0, resident = 0;
    if (std::sscanf(text.c_str(), "%lld %lld", &total, &resident) != 2) return 0;
    return resident * ::sysconf(_SC_PAGESIZE);
}

std::int64_t MemoryGauge::read(Time now) {
    if (looked_at_ && now - *looked_at_ < kLooksEach) return bytes_;
    looked_at_ = now;
    return bytes_ = resident_memory();
}

}  // namespace ddprun
