// The options of `train`, with their defaults. Pure. Errors: usage, one line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "examples/training_run.h"
#include "trainer/group/data_type.h"

namespace example {

// kTrainHelp describes each option.
struct TrainOptions : RunOptions {
    TrainOptions() : RunOptions{.program = "train", .steps = 200} {}
    int batch = 32;  // per rank
    int hidden = 64;
    int samples = 4096;
    float rate = 0.02f;
    float momentum = 0.9f;
    int reference_batch = 0;  // batch for which `rate` is right; 0: any batch
    float warm_up = 0;        // in epochs
    float cosine_end = 0;     // epoch at which the rate is 0; 0: it stays
    int zero = 0;             // 1: the optimizer's state is shared out over the ranks
    float clip = 0;           // greatest norm of all gradients; 0: no clipping
    // Of parameters and gradients; the optimizer always works in float32.
    ddprun::trainer::DataType dtype = ddprun::trainer::DataType::float32;
    double loss_scale = 65536;  // at the start; for float16
    int bucket_kib = 25 << 10;  // size of a bucket; the first: at most 1 MiB
    std::uint64_t seed = 1;
    int loader_threads = 1;
    std::string data;                  // a CSV file; empty: generated samples
    std::int64_t verify_replicas = 0;  // steps between comparisons after the first ones; 0: none
    int patience = 0;                  // validations without improvement; 0: no limit
    std::int64_t step_time_ms = 0;
};

// `arguments` without the program's name. Accepts `--name value` and `--name=value`.
ddprun::Result<TrainOptions> parse_train_options(const std::vector<std::string>& arguments);

// The text of --help.
extern const char kTrainHelp[];

}  // namespace example
