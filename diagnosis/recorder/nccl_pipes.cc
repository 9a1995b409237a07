// Writes into the pipes of NCCL's recorders.
#include "diagnosis/recorder/nccl_pipes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <thread>

#include "base/system/boot_clock.h"
#include "base/system/unique_fd.h"

namespace ddprun::agent {
namespace {

constexpr auto kLook = std::chrono::milliseconds{50};

}  // namespace

// Without a reader open() fails: the worker has no NCCL, or is gone.
bool ask_by_pipe(const std::string& pipe) {
    const UniqueFd end(::open(pipe.c_str(), O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
    struct stat status {};
    return end && ::fstat(end.get(), &status) == 0 && S_ISFIFO(status.st_mode) &&
           ::write(end.get(), "1", 1) == 1;
}

std::int64_t changed_at(const std::string& path) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0) return 0;
    return status.st_mtim.tv_sec * std::int64_t{1'000'000'000} + status.st_mtim.tv_nsec;
}

// A dump is written in one piece, within milliseconds: two looks that see the same are enough.
void await_dumps(std::vector<AwaitedDump> dumps, Duration patience) {
    const Time until = boot_now() + patience;
    std::map<std::string, std::int64_t> seen;
    while (!dumps.empty() && boot_now() < until) {
        std::this_thread::sleep_for(kLook);
        std::erase_if(dumps, [&](const AwaitedDump& dump) {
            const std::int64_t changed = changed_at(dump.path);
            const bool done = changed != dump.since && changed == seen[dump.path];
            seen[dump.path] = changed;
            return done;
        });
    }
}

}  // namespace ddprun::agent
