// Reads the second number of statm (proc(5)): pages.
#include "base/system/resident_memory.h"

#include <unistd.h>

#include <cstdio>

namespace ddprun {

std::int64_t ResidentMemory::bytes() {
    long long total = 0, resident = 0;
    if (std::sscanf(statm_.read().c_str(), "%lld %lld", &total, &resident) != 2) return 0;
    return resident * ::sysconf(_SC_PAGESIZE);
}

}  // namespace ddprun
