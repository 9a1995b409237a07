// The two hooks of the library: plain average, and average in bfloat16.
#include "trainer/gradients/communication_hook.h"

#include "trainer/gradients/float_math.h"

namespace ddprun::trainer {

namespace {
constexpr char kGradients[] = "gradients";
}  // namespace

Result<Work> AllReduceHook::begin(ProcessGroup& group, std::size_t, const Buffer& bucket,
                                  GpuStream stream) {
    return group.begin(Operation::all_reduce(bucket, ReduceOp::avg).on(stream).of(kGradients));
}

// The memory for the converted gradients is allocated once, not in every step.
Result<void> Bfloat16Hook::prepare(ProcessGroup& group, const std::vector<Buffer>& buckets) {
    halves_.clear();
    for (const Buffer& bucket : buckets) {
        halves_.emplace_back();
        if (bucket.type != DataType::float32) continue;
        auto made = group.allocate(bucket.count * size_of(DataType::bfloat16));
        if (!made) return made.error();
        halves_.back() = std::move(*made);
    }
    return {};
}

Result<Work> Bfloat16Hook::begin(ProcessGroup& group, std::size_t index, const Buffer& bucket,
                                 GpuStream stream) {
    if (!halves_[index])
        return group.begin(Operation::all_reduce(bucket, ReduceOp::avg).on(stream).of(kGradients));
    // Divides in float32 before the conversion, and then sums. Dividing the bfloat16 sum afterwards
    // would round once more, with only 8 bits of precision.
    const auto by = static_cast<float>(group.size());
    const Buffer half{halves_[index].data(), bucket.count, DataType::bfloat16};
    if (auto done = narrow(group.memory(), half, bucket, by, stream); !done) return done.error();
    // The sum, because each rank has divided its values already.
    return group.begin(Operation::all_reduce(half).on(stream).of(kGradients));
}

Result<void> Bfloat16Hook::end(std::size_t index, const Buffer& bucket, GpuStream stream) {
    const GroupMemory& half = halves_[index];
    if (!half) return {};
    return widen(half.kind(), bucket, {half.data(), bucket.count, DataType::bfloat16}, stream);
}

}  // namespace ddprun::trainer
