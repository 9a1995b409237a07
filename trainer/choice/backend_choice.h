// Which backend a job uses, Gloo or NCCL: the same one on all ranks. It depends on the GPUs that
// the ranks have. This room links neither of the two, so that a program with another Gloo (the one
// in libtorch, see trainer/torch) can use it.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "trainer/group/process_group.h"

namespace ddprun::trainer {

// A backend, and the reason in words for the log.
struct BackendChoice {
    Backend backend = Backend::gloo;
    std::string reason;
};

// The rule that chooses the backend. Pure. `gpus`: for each rank a name that no other GPU has, or
// an empty text for a rank without a GPU. NCCL needs one GPU for each rank. With a shared GPU NCCL
// only reports "Duplicate GPU detected"; this function names the two ranks.
BackendChoice choose_backend(const std::vector<std::string>& gpus);

// Agrees with the other ranks on a backend, through the group's own part of the store. All ranks
// must ask for the same one. If Gloo is chosen because NCCL cannot be used, options.note gets the
// reason. Errors: timed_out (a rank did not come), refused (options ask for NCCL, which cannot be
// used), unavailable, closed.
Result<Backend> agree_on_backend(const Context& context, Store& own, const GroupOptions& options,
                                 std::chrono::steady_clock::time_point deadline);

}  // namespace ddprun::trainer
