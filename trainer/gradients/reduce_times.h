// How long the buckets of a step were on their way, and how much of this time computation has
// hidden.
//
// A bucket is on its way from its begin() until its mean has arrived, also while the group's thread
// is still busy with the bucket before. With NCCL this includes the kernels that backward had
// launched before it. The clock is the host's: it shows how long the GPU was busy, but not with
// what.
//
// Pure.
#pragma once

#include <chrono>
#include <span>

namespace ddprun::trainer {

// Times of one step, or sums over several steps.
struct ReduceTimes {
    std::chrono::nanoseconds communication{0};  // at least one bucket was on its way
    std::chrono::nanoseconds waited{0};         // the part of it after finish() began

    // The share of the communication that ran behind computation: 0 none, 1 all of it.
    double hidden() const;
};

// When one bucket was begun, and when it ended.
struct BucketTime {
    using Point = std::chrono::steady_clock::time_point;
    Point begun, ended;
};

// `buckets` in the order in which they were begun. They end in the same order.
ReduceTimes reduce_times(std::span<const BucketTime> buckets, BucketTime::Point finish_begun);

}  // namespace ddprun::trainer
