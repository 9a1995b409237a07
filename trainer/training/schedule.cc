// The formulas of the learning rate.
#include "trainer/training/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace ddprun::trainer {

double scaled_rate(const Schedule& schedule, double global_batch) {
    return schedule.reference_batch > 0 ? schedule.rate * global_batch / schedule.reference_batch
                                        : schedule.rate;
}

double rate_at(const Schedule& schedule, double position, double global_batch) {
    const double peak = scaled_rate(schedule, global_batch);
    if (position < schedule.warm_up) {
        // Goyal et al. begin with the rate of one worker. Without scaling there is no such rate, so
        // the warm-up begins at 0.
        const double first = schedule.reference_batch > 0 ? std::min(schedule.rate, peak) : 0.0;
        return first + (peak - first) * position / schedule.warm_up;
    }
    if (schedule.end <= schedule.warm_up) return peak;
    const double done =
        std::min((position - schedule.warm_up) / (schedule.end - schedule.warm_up), 1.0);
    return schedule.final_rate +
           (peak - schedule.final_rate) * (1 + std::cos(std::numbers::pi * done)) / 2;
}

}  // namespace ddprun::trainer
