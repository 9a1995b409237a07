// Fills buckets from the last parameter to the first, and counts what each bucket still waits for.
#include "trainer/gradients/gradient_buckets.h"

#include <algorithm>
#include <string>

namespace ddprun::trainer {

namespace {

// The bytes that a gradient takes in the block, with those up to the next one.
std::size_t room_of(const GradientShape& gradient) {
    const std::size_t bytes = gradient.count * size_of(gradient.type);
    return (bytes + kGradientAlignment - 1) / kGradientAlignment * kGradientAlignment;
}

}  // namespace

BucketPlan plan_buckets(std::span<const GradientShape> gradients, std::size_t first_bytes,
                        std::size_t bytes) {
    BucketPlan plan;
    for (const auto& gradient : gradients) {
        plan.slots.push_back({0, plan.bytes});
        plan.bytes += room_of(gradient);
    }
    std::size_t filled = 0;  // bytes of gradients in the last bucket
    // Backwards, because backward computes the gradients of the last parameters first.
    for (std::size_t left = gradients.size(); left > 0; --left) {
        const GradientShape& gradient = gradients[left - 1];
        // If the last bucket is the only one, it is the first.
        const std::size_t cap = plan.buckets.size() == 1 ? first_bytes : bytes;
        // A bucket is one buffer of one collective call, which has one type.
        if (plan.buckets.empty() || plan.buckets.back().type != gradient.type || filled >= cap) {
            plan.buckets.push_back({gradient.type, 0, 0, {}});
            filled = 0;
        }
        auto& bucket = plan.buckets.back();
        plan.slots[left - 1].bucket = plan.buckets.size() - 1;
        // The gradient lies in front of those that are in the bucket already.
        bucket.offset = plan.slots[left - 1].offset;
        bucket.count += room_of(gradient) / size_of(gradient.type);
        filled += gradient.count * size_of(gradient.type);
        bucket.parameters.push_back(left - 1);
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

std::vector<std::size_t> BucketProgress::missing() const {
    std::vector<std::size_t> parameters;
    for (std::size_t i = 0; i < ready_.size(); ++i)
        if (!ready_[i]) parameters.push_back(i);
    return parameters;
}

}  // namespace ddprun::trainer
