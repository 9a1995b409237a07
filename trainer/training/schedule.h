// The learning rate at a point of the training: linear scaling with the global batch, linear
// warm-up, then constant or half a cosine down. (Scaling and warm-up as in Goyal et al., "Accurate,
// Large Minibatch SGD", 2017.)
//
// A position is a number of steps, epochs or samples; all positions must use one unit. Epochs or
// samples are right for an elastic job: with more ranks a step covers more samples.
//
// Pure.
#pragma once

#include <cstdint>

namespace ddprun::trainer {

struct Schedule {
    double rate = 0.1;           // for a global batch of `reference_batch`
    double reference_batch = 0;  // 0: no scaling, `rate` is for every batch
    // Where the warm-up ends. It begins at 0 with the rate of the reference batch (without scaling:
    // 0).
    double warm_up = 0;
    double end = 0;         // where the cosine reaches `final_rate`; 0: constant after the warm-up
    double final_rate = 0;  // not scaled
};

// rate × global_batch / reference_batch. `global_batch`: samples of one step over all ranks. With N
// times as many ranks the rate is N times as high.
double scaled_rate(const Schedule& schedule, double global_batch);

// The rate at a position. After `end` it is `final_rate`.
double rate_at(const Schedule& schedule, double position, double global_batch);

}  // namespace ddprun::trainer
