// Which gradients are reduced together in one bucket, and when a bucket may be sent.
//
// Buckets are filled in the reverse order of the parameters, because backward computes the
// gradients of the last layer first. The first bucket is small, so that communication begins early.
// A bucket holds one element type. Buckets are sent strictly in the order of their numbers, also if
// a later one is full first: all ranks must begin their collectives in the same order.
//
// Pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/error.h"
#include "trainer/group/data_type.h"

namespace ddprun::trainer {

// What the plan needs to know about one parameter's gradient.
struct GradientShape {
    std::size_t count = 0;  // elements
    DataType type = DataType::float32;
};

// Where each gradient lies in one block of memory. All ranks compute the same plan from the same
// shapes.
struct BucketPlan {
    // A piece of the block.
    struct Bucket {
        DataType type = DataType::float32;
        std::size_t offset = 0;               // bytes from the block's start
        std::size_t count = 0;                // elements, with those between the gradients
        std::vector<std::size_t> parameters;  // from the last one to the first
    };
    // The place of one parameter's gradient.
    struct Slot {
        std::size_t bucket = 0;
        std::size_t offset = 0;  // bytes from the block's start
    };
    std::vector<Bucket> buckets;
    std::vector<Slot> slots;  // one for each parameter
    std::size_t bytes = 0;    // of the block
};

// Where a gradient begins: vector instructions and the network work best from such addresses.
inline constexpr std::size_t kGradientAlignment = 256;

// The gradients lie in the order of the parameters, each from a multiple of kGradientAlignment on.
// A bucket is closed as soon as its gradients have at least `first_bytes` (the first bucket) or
// `bytes` (the others), or if the next gradient has another type. A gradient is never divided.
// `shards`: each bucket can be cut into so many equal parts, which begin at multiples of
// kGradientAlignment too; for that it has some elements more at its end.
BucketPlan plan_buckets(std::span<const GradientShape> gradients, std::size_t first_bytes,
                        std::size_t bytes, std::size_t shards = 1);

// What is ready so far in one backward pass. `plan` must outlive it.
class BucketProgress {
  public:
    explicit BucketProgress(const BucketPlan& plan);

    // Marks a gradient as ready. Returns the buckets that may be sent now, in order: none, one, or
    // several that had to wait for this one. Errors: usage, for a parameter that is ready already
    // or does not exist.
    Result<std::vector<std::size_t>> ready(std::size_t parameter);

    // The parameters whose gradients are not ready yet.
    std::vector<std::size_t> missing() const;

    // Whether a gradient is ready.
    bool begun() const;

    // For the next backward pass: no gradient is ready.
    void begin_again();

  private:
    const BucketPlan& plan_;
    std::vector<bool> ready_;
    std::vector<std::size_t> open_;  // for each bucket: gradients that are not ready
    std::size_t next_ = 0;           // the bucket that is sent next
};

}  // namespace ddprun::trainer
