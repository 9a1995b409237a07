// All nodes of a job leave together, for srun may kill what is left of a step when one has
// (--kill-on-bad-exit, --wait), and with it the last of another's output or the user's
// --on-failure: who is ready says so, and leaves when the leader does.
#pragma once

#include "base/system/unique_fd.h"

namespace ddprun::launcher {

// `leader`: the connection to it, of Link::part(). Blocks until its end, a minute at most: the
// leader may wait for other nodes, for its own output, and for the user's program.
void leave_with(const UniqueFd& leader);

}  // namespace ddprun::launcher
