// Adds up the times of buckets without counting an overlap twice.
#include "trainer/gradients/reduce_times.h"

#include <algorithm>

namespace ddprun::trainer {

double ReduceTimes::hidden() const {
    if (communication.count() <= 0) return 0;
    return 1.0 - static_cast<double>(waited.count()) / static_cast<double>(communication.count());
}

// Buckets overlap in time, so each counts only from the end of the one before.
ReduceTimes reduce_times(std::span<const BucketTime> buckets, BucketTime::Point finish_begun) {
    ReduceTimes times;
    auto counted = BucketTime::Point::min();
    for (const auto& [begun, ended] : buckets) {
        const auto from = std::max(begun, counted);
        if (ended <= from) continue;
        times.communication += ended - from;
        times.waited += std::max(ended, finish_begun) - std::max(from, finish_begun);
        counted = ended;
    }
    return times;
}

}  // namespace ddprun::trainer
