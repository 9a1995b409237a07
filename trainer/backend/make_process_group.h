// Creates a worker's process group. All ranks use one backend (Gloo or NCCL), which depends on the
// GPUs that the ranks have.
#pragma once

#include "trainer/group/process_group.h"

namespace ddprun::trainer {

// Meets the other ranks in the store, agrees with them on the backend, and connects. The group's
// timeout limits all of this together. All ranks must ask for the same backend. A job may have
// several groups: all ranks make them in the same order.
// Afterwards the group has its own connection to the store, so `store` is free for other use.
//
// Errors: timed_out (a rank did not come), refused (options ask for NCCL, which cannot be used),
// unavailable, closed.
Result<std::unique_ptr<ProcessGroup>> make_process_group(const Context& context, Store& store,
                                                         const GroupOptions& options = {});

}  // namespace ddprun::trainer
