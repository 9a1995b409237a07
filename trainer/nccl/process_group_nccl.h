// A process group on NCCL, the GPU backend. Programs call make_process_group() in trainer/backend,
// which chooses the backend. In a build without CUDA there is no GPU, so making a group fails.
#pragma once

#include <chrono>
#include <string>

#include "trainer/group/process_group.h"

namespace ddprun::trainer {

// Whether the NCCL library can be loaded now. `why`, if not null, gets the reason when it cannot.
bool nccl_loads(std::string* why);

// Connects to the other ranks of `context` until `deadline`, each with its own GPU. `store` belongs
// to the new group alone. Errors: unavailable (no GPU, no library, NCCL failed), timed_out, and
// those of the store.
Result<std::unique_ptr<ProcessGroup>> make_nccl_group(
    const Context& context, std::unique_ptr<Store> store, const GroupOptions& options,
    std::chrono::steady_clock::time_point deadline);

}  // namespace ddprun::trainer
