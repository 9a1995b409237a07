// The learning rate at a point of the training: linear scaling with the global batch, a linear
// warm-up to it, then constant or half a cosine down.
//
// Positions are numbers in any one unit: steps, epochs, or samples. Samples (or epochs) are the
// right one for an elastic job, because a step of more ranks is a larger one. Pure.
#pragma once

#include <cstdint>

namespace ddprun::trainer {

struct Schedule {
    double rate = 0.1;           // for a global batch of `reference_batch`
    double reference_batch = 0;  // 0: no scaling, `rate` holds for every batch
    double warm_up = 0;     // from the rate of the reference batch (0 when unscaled) up to here
    double end = 0;         // where the cosine reaches `final_rate`; 0: constant after warm-up
    double final_rate = 0;  // not scaled
};

// rate × global_batch / reference_batch: N ranks take steps N times as long.
double scaled_rate(const Schedule& schedule, double global_batch);

// Never negative; past `end` it is `final_rate`.
double rate_at(const Schedule& schedule, double position, double global_batch);

}  // namespace ddprun::trainer
