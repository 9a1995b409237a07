// Creates a worker's process group. All ranks use one backend (Gloo or NCCL), which depends on the
// GPUs that the ranks have.
#pragma once

#include "trainer/group/process_group.h"

namespace ddprun::trainer {

// Meets the other ranks in the store, agrees with them on the backend, and connects. Blocks for at
// most the group's timeout in each of these steps. All ranks must ask for the same backend.
// Afterwards the group has its own connection to the store, so `store` is free for other use.
//
// Errors: timed_out (a rank did not come), refused (options ask for NCCL, which cannot be used),
// unavailable, closed.
Result<std::unique_ptr<ProcessGroup>> make_process_group(const Context& context, Store& store,
                                                         const GroupOptions& options = {});

}  // namespace ddprun::trainer
