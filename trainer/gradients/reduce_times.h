// How long the buckets of a step were on their way, and how much of that computation hid.
//
// A bucket is on its way from when it was begun (Gloo sends its first messages there and then) until
// its mean has arrived, also while the group's thread is still at the bucket before. With NCCL that
// holds the kernels, too, which backward had put on the GPU before it: there the host's clock says
// until when, not on what, the GPU was busy. Pure.
#pragma once

#include <chrono>
#include <span>

namespace ddprun::trainer {

// Of one step, or a sum of several.
struct ReduceTimes {
    std::chrono::nanoseconds communication{0};  // at least one bucket was on its way
    std::chrono::nanoseconds waited{0};         // of that, with backward over: since finish() began

    // 0 when nothing was hidden behind computation, 1 when all was.
    double hidden() const;
};

struct BucketTime {
    using Point = std::chrono::steady_clock::time_point;
    Point begun, ended;
};

// `buckets` in the order in which they were begun, which is that in which they end.
ReduceTimes reduce_times(std::span<const BucketTime> buckets, BucketTime::Point finish_begun);

}  // namespace ddprun::trainer
