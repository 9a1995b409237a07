// Reads /proc/self/statm (resident_memory.h).
#include "base/system/resident_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

#include "base/system/unique_fd.h"

namespace ddprun {

std::int64_t resident_memory() {
    const UniqueFd file(::open("/proc/self/statm", O_RDONLY | O_CLOEXEC));
    char text[128] = {};
    long long total = 0, resident = 0;
    if (!file || ::read(file.get(), text, sizeof text - 1) <= 0) return 0;
    if (std::sscanf(text, "%lld %lld", &total, &resident) != 2) return 0;
    return resident * ::sysconf(_SC_PAGESIZE);
}

}  // namespace ddprun
