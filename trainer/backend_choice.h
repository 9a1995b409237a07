// Which backend a group uses, from what its ranks bring.
//
// No I/O. NCCL needs a GPU of its own for each rank, and would only say "Duplicate GPU detected".
#pragma once

#include <string>
#include <vector>

#include "trainer/process_group.h"

namespace ddprun::trainer {

struct BackendChoice {
    Backend backend = Backend::gloo;
    std::string reason;
};

// `gpus`: by rank, the name that no other GPU has, or nothing for a rank without one.
BackendChoice choose_backend(const std::vector<std::string>& gpus);

}  // namespace ddprun::trainer
