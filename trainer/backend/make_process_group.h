// Creates a worker's process group. All ranks use one backend (Gloo or NCCL), which depends on the
// GPUs that the ranks have.
#pragma once

#include <string>
#include <vector>

#include "trainer/group/process_group.h"

namespace ddprun::trainer {

// Meets the other ranks in the store, agrees with them on the backend, and connects. The group's
// timeout limits all of this together (NCCL: once more for its own connecting). All ranks must ask
// for the same backend. A job may have several groups: all ranks make them in the same order.
// Afterwards the group has its own connection to the store, so `store` is free for other use.
//
// Errors: timed_out (a rank did not come), refused (options ask for NCCL, which cannot be used),
// unavailable, closed.
Result<std::unique_ptr<ProcessGroup>> make_process_group(const Context& context, Store& store,
                                                         const GroupOptions& options = {});

// A backend, and the reason in words for the log.
struct BackendChoice {
    Backend backend = Backend::gloo;
    std::string reason;
};

// The rule that chooses the backend. Pure. `gpus`: for each rank a name that no other GPU has, or
// an empty text for a rank without a GPU. NCCL needs one GPU for each rank. With a shared GPU NCCL
// only reports "Duplicate GPU detected"; this function names the two ranks.
BackendChoice choose_backend(const std::vector<std::string>& gpus);

}  // namespace ddprun::trainer
