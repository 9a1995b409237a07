// How a keeper comes to be: forked from a young ddprun, or by exec of /proc/self/exe from one that
// has threads. The side of ddprun; no state.
#pragma once

#include <sys/types.h>

#include "agent/keeper/keeper.h"

namespace ddprun::agent::keeper {

struct Started {
    pid_t pid = -1;
    UniqueFd socket;  // ddprun's end
};
// Possible errors of both: internal.
Result<Started> start_by_fork(const KeeperOptions& options);
Result<Started> start_by_exec(const KeeperOptions& options);

}  // namespace ddprun::agent::keeper
