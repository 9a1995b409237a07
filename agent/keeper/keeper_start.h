// Starts a keeper process: by fork from a young ddprun, or by exec of /proc/self/exe from one that
// has threads. Runs in ddprun. No state.
#pragma once

#include <sys/types.h>

#include "agent/keeper/keeper.h"

namespace ddprun::agent::keeper {

// A keeper that was started: its pid, and ddprun's end of the socketpair.
struct Started {
    pid_t pid = -1;
    UniqueFd socket;
};
// Possible errors of both: internal (no process or no socket).
Result<Started> start_by_fork(const KeeperOptions& options);
Result<Started> start_by_exec(const KeeperOptions& options);

}  // namespace ddprun::agent::keeper
