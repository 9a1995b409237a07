// A worker's place in the job, from the variables that its launcher set: ddprun, or PyTorch's own
// torchrun.
//
//   RANK, WORLD_SIZE               required together; without both the world is this one process
//   LOCAL_RANK, LOCAL_WORLD_SIZE   default: rank and world size (all on one node)
//   MASTER_ADDR, MASTER_PORT       the generation's store; required when the world has more than
//   one TORCHELASTIC_RESTART_COUNT     the generation (0 in the first); 0 when unset
//   TORCHELASTIC_RUN_ID            the job; "none" when unset
//   TORCHELASTIC_USE_AGENT_STORE   "False" is refused: then nobody serves a store to meet in
//   CUDA_VISIBLE_DEVICES           not read: the CUDA runtime applies it
//
// A plain value, filled once in main and handed down. Errors: usage, with a sentence that names the
// variable.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/error.h"
#include "proto/ids.h"

namespace ddprun::trainer {

struct Context {
    Rank rank{0};
    LocalRank local_rank{0};
    int world_size = 1;
    int local_world_size = 1;
    std::string master_addr;  // empty: a world of one with no store
    std::uint16_t master_port = 0;
    Generation generation{0};
    std::string run_id = "none";

    // The only place in the library that reads these variables from the process.
    static Result<Context> from_environment();

    // The same from a map; what the tests use.
    static Result<Context> from_variables(const std::map<std::string, std::string>& variables);

    bool has_store() const { return !master_addr.empty(); }
    bool is_first() const { return rank.value == 0; }

    // Which of `gpus` visible GPUs is this worker's: the only one when the launcher shows one to
    // each, else the one of its local rank. -1 when there is none at all.
    int gpu_index(int gpus) const { return gpus < 1 ? -1 : local_rank.value % gpus; }
};

}  // namespace ddprun::trainer
