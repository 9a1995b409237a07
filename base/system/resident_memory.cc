// Reads the second number of statm (proc(5)): pages. No descriptor stays open for it: a limit of
// open files leaves few.
#include "base/system/resident_memory.h"

#include <unistd.h>

#include <cstdio>

#include "base/system/small_file.h"

namespace ddprun {

std::int64_t resident_memory() {
    const std::string text = read_small_file("/proc/self/statm");
    long long total = 0, resident = 0;
    if (std::sscanf(text.c_str(), "%lld %lld", &total, &resident) != 2) return 0;
    return resident * ::sysconf(_SC_PAGESIZE);
}

}  // namespace ddprun
