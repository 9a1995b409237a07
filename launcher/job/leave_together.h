// Lets all nodes of a job exit at the same time. srun may kill the rest of a step when one task has
// exited (--kill-on-bad-exit, --wait), and with it the last output of another node or the user's
// --on-failure program. So a node that is ready says so to the leader and waits until the leader
// leaves.
#pragma once

#include "base/system/unique_fd.h"

namespace ddprun::launcher {

// `leader` is the connection to the leader, from Link::part(). Blocks until the leader closes it,
// one minute at most: the leader may wait for other nodes, for its own output, and for the user's
// program.
void leave_with(const UniqueFd& leader);

}  // namespace ddprun::launcher
