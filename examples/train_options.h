// The switches of `train`, with their defaults. Pure. Errors: usage, one line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "trainer/group/process_group.h"

namespace example {

struct TrainOptions {
    std::int64_t steps = 200;
    int batch = 32;  // per rank
    int hidden = 64;
    int samples = 4096;
    float rate = 0.02f;
    float momentum = 0.9f;
    int reference_batch = 0;    // that `rate` is for; 0: for every batch
    float warm_up = 0;          // epochs
    float cosine_end = 0;       // epoch at which the rate is 0; 0: it stays
    float clip = 0;             // norm of all gradients; 0: never
    int bucket_kib = 25 << 10;  // of gradients that travel together; the first has 1 MiB at most
    std::uint64_t seed = 1;
    std::string data;          // CSV; empty: made
    std::string snapshot_dir;  // empty: none
    std::int64_t snapshot_every = 20;
    int snapshot_keep = 3;
    std::int64_t log_every = 10;
    std::int64_t validate_every = 0;  // 0: after each epoch
    int patience = 0;                 // validations without a better one; 0: any number
    std::string metrics;              // JSON lines; empty: none
    std::int64_t step_time_ms = 0;
    std::int64_t timeout_s = 300;
    ddprun::trainer::Backend backend = ddprun::trainer::Backend::automatic;
    std::int64_t crash_at_step = -1;  // -1: never
    int crash_rank = 0;
    int crash_signal = 9;
    int crash_exit = -1;  // -1: by crash_signal
    bool help = false;
};

ddprun::Result<TrainOptions> parse_train_options(const std::vector<std::string>& arguments);

extern const char kTrainHelp[];

}  // namespace example
