// Context: a worker's place in the job, from the environment variables that its launcher sets. The
// launcher is ddprun or PyTorch's torchrun.
//
//   RANK, WORLD_SIZE               set together; without both the world is this one process
//   LOCAL_RANK, LOCAL_WORLD_SIZE   default: rank and world size (all ranks on one node)
//   MASTER_ADDR, MASTER_PORT       where the generation's store is; required if the world has more
//                                  than one rank
//   TORCHELASTIC_RESTART_COUNT     the generation, from 0; 0 if unset
//   TORCHELASTIC_RUN_ID            the job's id; "none" if unset
//   TORCHELASTIC_USE_AGENT_STORE   "False" and "0" are refused: rank 0 cannot serve a store
//   CUDA_VISIBLE_DEVICES           not read here: the CUDA runtime applies it
//
// A plain value. main fills it once and hands it down. Errors: usage; the sentence names the
// variable.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "proto/ids.h"

namespace ddprun::trainer {

struct Context {
    Rank rank{0};
    LocalRank local_rank{0};
    int world_size = 1;
    int local_world_size = 1;
    std::string master_addr;  // empty: a world of one without a store
    std::uint16_t master_port = 0;
    Generation generation{0};
    std::string run_id = "none";
    // Of the place in a part of the job (ProcessGroup::split): of each of the part's ranks its rank
    // in the job. Empty: they are the same.
    std::vector<int> job_ranks = {};

    // Reads the variables of this process. Nothing else in the library reads them.
    static Result<Context> from_environment();

    // Reads them from a map instead. Tests use it.
    static Result<Context> from_variables(const std::map<std::string, std::string>& variables);

    bool has_store() const { return !master_addr.empty(); }
    bool is_first() const { return rank.value == 0; }

    // Which of `gpus` visible GPUs this worker uses. If the launcher shows each worker only its own
    // GPU, that is number 0, else the one with the number of its local rank. -1 if there is no GPU.
    int gpu_index(int gpus) const { return gpus < 1 ? -1 : local_rank.value % gpus; }
};

}  // namespace ddprun::trainer
