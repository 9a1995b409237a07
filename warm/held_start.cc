// Duplicates the descriptors of a worker.
#include "warm/held_start.h"

#include <fcntl.h>

namespace ddprun::agent::warm {

std::optional<HeldStart> hold(const WorkerStart& start) {
    HeldStart kept{start, {}};
    std::vector<int*> fds{&kept.start.stdin_fd, &kept.start.stdout_fd, &kept.start.stderr_fd};
    for (ExtraFd& extra : kept.start.extra) fds.push_back(&extra.fd);
    for (int* fd : fds) {
        if (*fd < 0) continue;
        *fd = ::fcntl(*fd, F_DUPFD_CLOEXEC, 3);
        if (*fd < 0) return std::nullopt;
        kept.held.emplace_back(*fd);
    }
    return kept;
}

}  // namespace ddprun::agent::warm
