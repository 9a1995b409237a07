// How a worker comes to a process group: which backend it uses, from what its ranks bring, and the
// group itself.
#pragma once

#include <string>
#include <vector>

#include "trainer/group/process_group.h"

namespace ddprun::trainer {

// Meets the others in the store and connects. All ranks agree on the backend first. The group has a
// connection of its own to the store afterwards.
Result<std::unique_ptr<ProcessGroup>> make_process_group(const Context& context, Store& store,
                                                         const GroupOptions& options = {});

struct BackendChoice {
    Backend backend = Backend::gloo;
    std::string reason;
};

// No I/O. NCCL needs a GPU of its own for each rank, and would only say "Duplicate GPU detected".
// `gpus`: by rank, the name that no other GPU has, or nothing for a rank without one.
BackendChoice choose_backend(const std::vector<std::string>& gpus);

}  // namespace ddprun::trainer
