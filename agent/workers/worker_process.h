// One worker as a process: which processes are its, and signals that reach it and nobody else.
//
// Thread: the loop's. Owner: the worker set.
#pragma once

#include <cstdint>

#include "base/system/unique_fd.h"

namespace ddprun::agent {

struct WorkerProcess {
    std::int64_t pid = 0;  // 0 until the keeper has started it
    UniqueFd pidfd;        // -1 on an old kernel, too
    bool ended = false;    // reaped, or never started

    bool lives() const { return pid != 0 && !ended; }
    // Whether a process is in its session or process group.
    bool has(std::int64_t process) const;
    // Sends a signal to its process group.
    void signal(int number) const;
    // Sends SIGKILL to this process alone. Without a pidfd the keeper alone kills: it knows which
    // pids are still in use.
    void kill() const;
};

}  // namespace ddprun::agent
