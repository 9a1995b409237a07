// Which gradients are reduced together, and when a bucket may go.
//
// Buckets are filled against the order of the parameters, because backward comes to the last layer
// first; the first bucket is small, so that communication begins early. A bucket has one type.
// Buckets go strictly in the order of their numbers, on all ranks alike, also when a later one is
// complete first. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/error.h"
#include "trainer/group/data_type.h"

namespace ddprun::trainer {

struct GradientShape {
    std::size_t count = 0;
    DataType type = DataType::float32;
};

struct BucketPlan {
    struct Bucket {
        DataType type = DataType::float32;
        std::size_t count = 0;                // elements
        std::vector<std::size_t> parameters;  // in the order in which they lie there
    };
    struct Slot {
        std::size_t bucket = 0;
        std::size_t offset = 0;  // elements
    };
    std::vector<Bucket> buckets;
    std::vector<Slot> slots;  // one for each parameter
};

// A bucket closes once it holds `first_bytes` (the first), or `bytes`. A gradient lies whole in
// one.
BucketPlan plan_buckets(std::span<const GradientShape> gradients, std::size_t first_bytes,
                        std::size_t bytes);

// One backward's way through the plan.
class BucketProgress {
  public:
    explicit BucketProgress(const BucketPlan& plan);

    // The buckets that may go now, in order: none, one, or several that had waited for this one.
    // Errors: usage, for a parameter that was ready already.
    Result<std::vector<std::size_t>> ready(std::size_t parameter);

    // The parameters that are not ready.
    std::vector<std::size_t> missing() const;

    void begin_again();

  private:
    const BucketPlan& plan_;
    std::vector<bool> ready_;
    std::vector<std::size_t> open_;  // gradients that each bucket still waits for
    std::size_t next_ = 0;           // the bucket that goes next
};

}  // namespace ddprun::trainer
