// Fills buckets from the last parameter to the first, and counts what each bucket still waits for.
#include "trainer/gradients/gradient_buckets.h"

#include <algorithm>
#include <string>

namespace ddprun::trainer {

namespace {

std::size_t rounded_up(std::size_t bytes, std::size_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

// The bytes that a gradient takes in the block, with those up to the next one.
std::size_t room_of(const GradientShape& gradient) {
    return rounded_up(gradient.count * size_of(gradient.type), kGradientAlignment);
}

// Says which gradients are in which bucket. Backwards, because backward computes the gradients of
// the last parameters first.
void fill_buckets(BucketPlan& plan, std::span<const GradientShape> gradients,
                  std::size_t first_bytes, std::size_t bytes) {
    std::size_t filled = 0;  // bytes of gradients in the last bucket
    for (std::size_t left = gradients.size(); left > 0; --left) {
        const GradientShape& gradient = gradients[left - 1];
        // If the last bucket is the only one, it is the first.
        const std::size_t cap = plan.buckets.size() == 1 ? first_bytes : bytes;
        // A bucket is one buffer of one collective call, which has one type.
        if (plan.buckets.empty() || plan.buckets.back().type != gradient.type || filled >= cap) {
            plan.buckets.push_back({gradient.type, 0, 0, {}});
            filled = 0;
        }
        plan.slots[left - 1].bucket = plan.buckets.size() - 1;
        filled += gradient.count * size_of(gradient.type);
        plan.buckets.back().parameters.push_back(left - 1);
    }
}

}  // namespace

BucketPlan plan_buckets(std::span<const GradientShape> gradients, std::size_t first_bytes,
                        std::size_t bytes, std::size_t shards) {
    BucketPlan plan;
    plan.slots.resize(gradients.size());
    fill_buckets(plan, gradients, first_bytes, bytes);
    // The last bucket has the first gradients.
    for (std::size_t i = plan.buckets.size(); i-- > 0;) {
        auto& bucket = plan.buckets[i];
        bucket.offset = plan.bytes;
        for (std::size_t k = bucket.parameters.size(); k-- > 0;) {
            plan.slots[bucket.parameters[k]].offset = plan.bytes;
            plan.bytes += room_of(gradients[bucket.parameters[k]]);
        }
        const std::size_t room =
            rounded_up(plan.bytes - bucket.offset, shards * kGradientAlignment);
        plan.bytes = bucket.offset + room;
        bucket.count = room / size_of(bucket.type);
    }
    return plan;
}

BucketProgress::BucketProgress(const BucketPlan& plan) : plan_(plan) { begin_again(); }

void BucketProgress::begin_again() {
    ready_.assign(plan_.slots.size(), false);
    open_.clear();
    for (const auto& bucket : plan_.buckets) open_.push_back(bucket.parameters.size());
    next_ = 0;
}

Result<std::vector<std::size_t>> BucketProgress::ready(std::size_t parameter) {
    if (parameter >= ready_.size() || ready_[parameter])
        return usage_error("gradient " + std::to_string(parameter) + " of " +
                           std::to_string(ready_.size()) +
                           " is already ready in this backward pass, or does not exist");
    ready_[parameter] = true;
    --open_[plan_.slots[parameter].bucket];
    std::vector<std::size_t> go;
    // A full bucket behind an open one waits, so that the order is the same on all ranks.
    while (next_ < open_.size() && open_[next_] == 0) go.push_back(next_++);
    return go;
}

bool BucketProgress::begun() const {
    return std::find(ready_.begin(), ready_.end(), true) != ready_.end();
}

std::vector<std::size_t> BucketProgress::missing() const {
    std::vector<std::size_t> parameters;
    for (std::size_t i = 0; i < ready_.size(); ++i)
        if (!ready_[i]) parameters.push_back(i);
    return parameters;
}

}  // namespace ddprun::trainer
