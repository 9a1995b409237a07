// The options of tensor_parallel and pipeline, with their defaults. Pure. Errors: usage, one line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace example {

struct ParallelOptions {
    int parts = 2;          // ranks that share one replica of the model
    int batch = 64;         // samples of a step, over all replicas
    int micro_batches = 8;  // of a replica's share; pipeline only
    std::int64_t steps = 40;
    float rate = 0.3f;
    std::string snapshot_dir;  // empty: none
    std::int64_t snapshot_every = 10;
    std::uint64_t checked_launches = 0;  // see GroupOptions
    std::int64_t crash_at_step = -1;     // -1: never
    int crash_rank = 1;
    bool help = false;
};

// `arguments` without the program's name, as `--name value` and `--name=value`. `program`: also
// decides which options have an effect.
ddprun::Result<ParallelOptions> parse_parallel_options(const std::vector<std::string>& arguments,
                                                       const std::string& program);

// The text of --help behind its first line.
extern const char kParallelHelp[];

}  // namespace example
