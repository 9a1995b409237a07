// Sends full buckets, waits for them, and checks and clips the averaged gradients.
#include "trainer/gradients/gradient_reducer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "trainer/gpu/gpu.h"

namespace ddprun::trainer {
namespace {

BucketPlan plan_of(const std::vector<NamedBuffer>& parameters, const ReducerOptions& options) {
    std::vector<GradientShape> shapes;
    for (const auto& p : parameters) shapes.push_back({p.buffer.count, p.buffer.type});
    return plan_buckets(shapes, options.first_bucket_bytes, options.bucket_bytes);
}

// In double: the squares of many floats would lose precision, or overflow, as a float sum.
template <class T>
double square_sum_as(const Buffer& buffer) {
    const T* values = static_cast<const T*>(buffer.data);
    double sum = 0;
    for (std::size_t i = 0; i < buffer.count; ++i) {
        const double value = static_cast<double>(values[i]);
        sum += value * value;
    }
    return sum;
}

// The sum of the squares of a buffer, wherever it lies. The GPU has a kernel for float32 only.
Result<double> square_sum(Memory memory, const Buffer& buffer) {
    if (memory == Memory::gpu) {
        if (buffer.type != DataType::float32)
            return usage_error("gradients on a GPU can be clipped or searched only as F32");
        return gpu_square_sum(static_cast<const float*>(buffer.data), buffer.count);
    }
    switch (buffer.type) {
        case DataType::float64:
            return square_sum_as<double>(buffer);
        case DataType::float16:
            return square_sum_as<Half>(buffer);
        case DataType::bfloat16:
            return square_sum_as<BFloat16>(buffer);
        default:
            return square_sum_as<float>(buffer);
    }
}

}  // namespace

GradientReducer::GradientReducer(ProcessGroup& group, std::vector<NamedBuffer> parameters,
                                 const ReducerOptions& options)
    : group_(group),
      parameters_(std::move(parameters)),
      options_(options),
      plan_(plan_of(parameters_, options)),
      progress_(plan_),
      hook_(options.hook ? options.hook : std::make_shared<AllReduceHook>()),
      used_(parameters_.size(), true),
      not_finite_(parameters_.size()) {}

GradientReducer::~GradientReducer() {
    // After an error some buckets may still be on their way. They must not lose their memory.
    for (const auto& work : works_) (void)work.wait();
    if (hook_) hook_->serves_ = false;
}

Result<std::unique_ptr<GradientReducer>> GradientReducer::make(ProcessGroup& group,
                                                               std::vector<NamedBuffer> parameters,
                                                               const ReducerOptions& options,
                                                               std::vector<NamedBuffer> buffers) {
    for (const auto& p : parameters) {
        if (is_integer(p.buffer.type))
            return usage_error("parameter \"" + p.name + "\" is " +
                               std::string(to_string(p.buffer.type)) + ", which has no gradient");
    }
    std::unique_ptr<GradientReducer> made(
        new GradientReducer(group, std::move(parameters), options));
    if (auto done = made->allocate(); !done) return done.error();
    if (options.broadcast_at_start) {
        if (auto done = made->synchronize(buffers); !done) return done.error();
    }
    return made;
}

Result<void> GradientReducer::allocate() {
    // Two reducers would overwrite each other's state in the hook. The pointer is dropped, so that
    // the destructor does not release the hook that another reducer uses.
    if (std::exchange(hook_->serves_, true)) {
        hook_.reset();
        return usage_error("this communication hook serves another reducer; give each its own");
    }
    std::vector<Buffer> buckets;
    for (const auto& planned : plan_.buckets) {
        auto memory = GroupMemory::make(group_.memory(), planned.count * size_of(planned.type));
        if (!memory) return memory.error();
        memory_.push_back(std::move(*memory));
        buckets.push_back(bucket(buckets.size()));
    }
    return hook_->prepare(group_, buckets);
}

// Makes the parameters equal on all ranks. Shapes are compared first: a broadcast between unequal
// shapes would fail without the name of the parameter.
Result<void> GradientReducer::synchronize(const std::vector<NamedBuffer>& buffers) {
    std::vector<NamedBuffer> all = parameters_;
    all.insert(all.end(), buffers.begin(), buffers.end());
    if (auto same = verify_same_shapes(group_, all); !same) return same;
    std::vector<Work> works;
    // All broadcasts are begun before the first wait, so that the group's thread never waits for
    // this one.
    for (const auto& named : all)
        works.push_back(group_.begin(Operation::broadcast(named.buffer, 0)));
    for (const auto& work : works)
        if (auto done = work.wait(); !done) return done;
    return verify_equal(group_, all);
}

Buffer GradientReducer::bucket(std::size_t index) const {
    return {memory_[index].data(), plan_.buckets[index].count, plan_.buckets[index].type};
}

// A view into the bucket: backward writes directly into the memory that is sent.
Buffer GradientReducer::gradient(std::size_t parameter) const {
    const auto& slot = plan_.slots[parameter];
    const Buffer& value = parameters_[parameter].buffer;
    return {static_cast<char*>(memory_[slot.bucket].data()) + slot.offset * size_of(value.type),
            value.count, value.type};
}

std::vector<NamedBuffer> GradientReducer::gradients() const {
    std::vector<NamedBuffer> all;
    for (std::size_t i = 0; i < parameters_.size(); ++i)
        all.push_back({parameters_[i].name, gradient(i)});
    return all;
}

// Whole buckets at once: there is nothing between the gradients.
Result<void> GradientReducer::zero() {
    for (std::size_t i = 0; i < memory_.size(); ++i) {
        if (group_.memory() == Memory::gpu) {
            if (auto done = gpu_zero(memory_[i].data(), bucket(i).bytes()); !done) return done;
        } else {
            std::memset(memory_[i].data(), 0, bucket(i).bytes());
        }
    }
    return {};
}

Result<void> GradientReducer::ready(std::size_t parameter) {
    // Accumulation: the gradients stay in the buckets until a backward pass without no_sync().
    if (quiet_) return {};
    if (options_.find_not_finite)
        if (auto done = note_not_finite(parameter); !done) return done;
    auto go = progress_.ready(parameter);
    if (!go) return go.error();
    for (std::size_t index : *go)
        if (auto done = launch(index); !done) return done;
    return {};
}

// Before the reduction it is still known on which rank a value is wrong. One pass is enough: a sum
// of squares is not finite if one of the values is not.
Result<void> GradientReducer::note_not_finite(std::size_t parameter) {
    auto sum = square_sum(group_.memory(), gradient(parameter));
    if (!sum) return sum.error();
    not_finite_[parameter] = !std::isfinite(*sum);
    return {};
}

// Looks at the averaged gradients. They have the same bits on all ranks, so all ranks take the same
// branch, and either none or all of them make the collective call that finds the rank.
Result<void> GradientReducer::verify_reduced() {
    bool finite = true;
    for (std::size_t i = 0; finite && i < memory_.size(); ++i) {
        auto sum = square_sum(group_.memory(), bucket(i));
        if (!sum) return sum.error();
        finite = std::isfinite(*sum);
    }
    if (finite) return {};
    const auto first = std::find(not_finite_.begin(), not_finite_.end(), true);
    std::optional<std::size_t> mine;
    if (first != not_finite_.end()) mine = first - not_finite_.begin();
    if (auto found = verify_none_found(group_, gradients(), mine); !found) return found;
    // Each rank's values are finite, but their sum is not.
    return Error(ErrorCode::malformed, "the sum of the ranks' gradients is not a finite number");
}

// The time is taken before begin(), because Gloo sends its first messages there.
Result<void> GradientReducer::launch(std::size_t index) {
    const auto begun = std::chrono::steady_clock::now();
    auto work = hook_->begin(group_, index, bucket(index));
    if (!work) return work.error();
    bucket_times_.push_back({begun, {}});
    works_.push_back(std::move(*work));
    return {};
}

// Treats parameters that backward did not reach as ready, so that their buckets are sent. All ranks
// must agree on whether a parameter was used on any rank. If some optimizers updated it and others
// did not, the parameters would drift apart.
Result<void> GradientReducer::mark_unused() {
    const auto missing = progress_.missing();
    if (!options_.find_unused) {
        if (missing.empty()) return {};
        return usage_error("backward did not reach " + std::to_string(missing.size()) +
                           " parameters, the first is \"" + parameters_[missing[0]].name +
                           "\"; set find_unused, or call ready() for each");
    }
    std::vector<double> used(parameters_.size(), 1.0);
    for (std::size_t i : missing) {
        used[i] = 0;
        if (auto done = ready(i); !done) return done;
    }
    // By now every rank has begun all buckets, whatever it missed. So this is the next collective
    // call on all of them.
    if (auto done = group_.all_reduce_values(used, ReduceOp::max); !done) return done;
    for (std::size_t i = 0; i < used.size(); ++i) used_[i] = used[i] > 0;
    return {};
}

// Waits for the buckets in their order. end() of one bucket runs while later ones are on their way.
Result<void> GradientReducer::finish() {
    const auto begun = std::chrono::steady_clock::now();
    if (auto done = mark_unused(); !done) return done;
    for (std::size_t i = 0; i < works_.size(); ++i) {
        if (auto done = works_[i].wait(); !done) return done;
        bucket_times_[i].ended = works_[i].ended();
        // Buckets were begun in the order of their numbers, so works_[i] is that of bucket i.
        if (auto done = hook_->end(i, bucket(i)); !done) return done;
    }
    times_ = reduce_times(bucket_times_, begun);
    works_.clear();
    bucket_times_.clear();
    // Before the last check, so that the reducer can be used again after a gradient that was not
    // finite.
    progress_.begin_again();
    return options_.find_not_finite ? verify_reduced() : Result<void>();
}

Result<double> GradientReducer::clip(double most) {
    double sum = 0;
    for (std::size_t i = 0; i < memory_.size(); ++i) {
        auto part = square_sum(group_.memory(), bucket(i));
        if (!part) return part.error();
        sum += *part;
    }
    const double norm = std::sqrt(sum);
    // The norm is equal on all ranks, because the gradients are. A NaN is not greater than
    // anything: the gradients then stay as they are, and the caller sees the NaN.
    if (!(norm > most)) return norm;
    for (std::size_t i = 0; i < memory_.size(); ++i) {
        if (group_.memory() == Memory::host) {
            divide(bucket(i), norm / most);
        } else if (auto done = gpu_divide(static_cast<float*>(memory_[i].data()), bucket(i).count,
                                          static_cast<float>(norm / most));
                   !done) {
            return done.error();
        }
    }
    return norm;
}

}  // namespace ddprun::trainer
