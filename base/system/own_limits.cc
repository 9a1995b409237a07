// Compares the limits of the process with what it needs.
#include "base/system/own_limits.h"

#include <sys/resource.h>

#include <string>

namespace ddprun {
namespace {

// The loop, its signals, the keeper and the job's own sockets. Each worker needs more.
constexpr rlim_t kFiles = 16;
// Buffers of 64 KiB lie on the stack, and threads get stacks of the same size.
constexpr rlim_t kStack = rlim_t{256} << 10;

}  // namespace

Result<> check_own_limits() {
    rlimit limit{};
    // The soft limit of files is raised later.
    if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max < kFiles)
        return Error(ErrorCode::unavailable, "the limit of open files is " +
                                                 std::to_string(limit.rlim_max) +
                                                 " (ulimit -n), but " + std::to_string(kFiles) +
                                                 " are needed, and more for the workers; raise it");
    if (::getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < kStack)
        return Error(ErrorCode::unavailable,
                     "the limit of the stack is " + std::to_string(limit.rlim_cur >> 10) +
                         " KiB (ulimit -s), but " + std::to_string(kStack >> 10) +
                         " are needed; raise it");
    return {};
}

}  // namespace ddprun
