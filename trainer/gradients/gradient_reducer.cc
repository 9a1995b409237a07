// Sends full buckets, waits for them, and checks and clips the averaged gradients.
#include "trainer/gradients/gradient_reducer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "trainer/gpu/gpu.h"
#include "trainer/gradients/float_math.h"

namespace ddprun::trainer {
namespace {

BucketPlan plan_of(const std::vector<NamedBuffer>& parameters, const ReducerOptions& options) {
    std::vector<GradientShape> shapes;
    for (const auto& p : parameters) shapes.push_back({p.buffer.count, p.buffer.type});
    const std::size_t shards = options.hook ? options.hook->shards() : 1;
    return plan_buckets(shapes, options.first_bucket_bytes, options.bucket_bytes,
                        std::max({options.shards, shards, std::size_t{1}}));
}

// Bytes of a tensor that is copied to travel with others, and of all that travel at once.
constexpr std::size_t kSmall = std::size_t{256} << 10, kFlat = std::size_t{8} << 20;

}  // namespace

GradientReducer::GradientReducer(ProcessGroup& group, std::vector<NamedBuffer> parameters,
                                 const ReducerOptions& options)
    : group_(group),
      parameters_(std::move(parameters)),
      options_(options),
      plan_(plan_of(parameters_, options)),
      progress_(plan_),
      hook_(options.hook ? options.hook : std::make_shared<AllReduceHook>()),
      written_(plan_.buckets.size()),
      used_(parameters_.size(), true),
      quietly_used_(parameters_.size()),
      averaged_over_(group.size()) {}

GradientReducer::~GradientReducer() {
    // Buckets may still be on their way. They must not lose their memory.
    for (const auto& work : works_) (void)work.wait();
    if (auto last = on_gpu() && own_stream() ? GpuEvent::record(own_stream()) : GpuEvent(); last)
        if (*last) (void)last->wait();
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
    if (on_gpu()) {
        auto stream = OwnGpuStream::make();
        if (!stream) return stream.error();
        stream_ = std::move(*stream);
    }
    if (auto done = take_block(); !done) return done;
    if (auto done = norm_.prepare(group_.memory(), parameters_.size() + 2); !done) return done;
    std::vector<Buffer> buckets;
    for (std::size_t i = 0; i < plan_.buckets.size(); ++i) buckets.push_back(bucket(i));
    return hook_->prepare(group_, buckets);
}

// Zeros also between the gradients: these are sent, and counted in the norm.
Result<void> GradientReducer::take_block() {
    block_ = static_cast<char*>(options_.block);
    if (!block_) {
        auto memory = group_.allocate(plan_.bytes);
        if (!memory) return memory.error();
        memory_ = std::move(*memory);
        block_ = static_cast<char*>(memory_.data());
        return {};
    }
    const auto address = reinterpret_cast<std::uintptr_t>(block_);
    if (options_.block_bytes < plan_.bytes || address % kGradientAlignment)
        return usage_error(
            "the block for the gradients has " + std::to_string(options_.block_bytes) +
            " bytes from an address that is " + std::to_string(address % kGradientAlignment) +
            " above a multiple of " + std::to_string(kGradientAlignment) + "; give it " +
            std::to_string(plan_.bytes) + " bytes from such a multiple on");
    registration_ = group_.registered(block_, plan_.bytes);
    return zero(options_.stream);
}

// Makes the parameters equal on all ranks. Shapes are compared first: a broadcast between unequal
// shapes would fail without the name of the parameter.
Result<void> GradientReducer::synchronize(const std::vector<NamedBuffer>& buffers) {
    std::vector<NamedBuffer> all = parameters_;
    all.insert(all.end(), buffers.begin(), buffers.end());
    if (auto same = verify_same_shapes(group_, all); !same) return same;
    std::vector<Buffer> small;
    std::vector<Work> works;
    // All broadcasts are begun before the first wait, so that the group's thread never waits for
    // this one.
    for (const auto& [name, buffer] : all) {
        if (buffer.bytes() < kSmall)
            small.push_back(buffer);
        else
            works.push_back(
                group_.begin(Operation::broadcast(buffer, 0).on(options_.stream).of("parameters")));
    }
    for (const auto& work : works)
        if (auto done = work.wait(); !done) return done;
    if (auto done = broadcast_small(small); !done) return done;
    return verify_equal(group_, all);
}

// Many tensors in one broadcast, by way of one buffer.
Result<void> GradientReducer::broadcast_small(std::span<const Buffer> buffers) {
    std::size_t bytes = 0;
    for (const auto& buffer : buffers) bytes += buffer.bytes();
    if (bytes == 0) return {};
    auto memory = group_.allocate(std::min(bytes, kFlat));
    if (!memory) return memory.error();
    char* const flat = static_cast<char*>(memory->data());
    const auto copy = [&](void* to, const void* from, std::size_t count) -> Result<void> {
        if (on_gpu()) return gpu_copy(to, from, count, options_.stream);
        if (count) std::memcpy(to, from, count);
        return {};
    };
    while (!buffers.empty()) {
        std::size_t count = 0, filled = 0;
        for (; count < buffers.size() && filled + buffers[count].bytes() <= kFlat; ++count) {
            const Buffer& buffer = buffers[count];
            if (group_.rank() == 0)
                if (auto done = copy(flat + filled, buffer.data, buffer.bytes()); !done)
                    return done;
            filled += buffer.bytes();
        }
        const auto operation =
            Operation::broadcast({flat, filled, DataType::uint8}, 0).on(options_.stream);
        if (auto done = group_.call(operation.of("parameters")); !done) return done;
        const char* from = flat;
        for (const Buffer& buffer : buffers.first(count)) {
            if (group_.rank() != 0)
                if (auto done = copy(buffer.data, from, buffer.bytes()); !done) return done;
            from += buffer.bytes();
        }
        buffers = buffers.subspan(count);
    }
    if (!on_gpu()) return {};
    const auto there = GpuEvent::record(options_.stream);
    return there ? there->wait() : there.error();
}

Buffer GradientReducer::bucket(std::size_t index) const {
    const auto& planned = plan_.buckets[index];
    return {block_ + planned.offset, planned.count, planned.type};
}

Buffer GradientReducer::own_part(std::size_t index) const {
    Buffer part = bucket(index);
    const std::size_t shards = hook_->shards();
    part.count /= shards;
    if (shards > 1)
        part.data =
            static_cast<char*>(part.data) + static_cast<std::size_t>(group_.rank()) * part.bytes();
    return part;
}

// A view into the bucket: backward writes directly into the memory that is sent.
Buffer GradientReducer::gradient(std::size_t parameter) const {
    const Buffer& value = parameters_[parameter].buffer;
    return {block_ + plan_.slots[parameter].offset, value.count, value.type};
}

std::vector<NamedBuffer> GradientReducer::gradients() const {
    std::vector<NamedBuffer> all;
    for (std::size_t i = 0; i < parameters_.size(); ++i)
        all.push_back({parameters_[i].name, gradient(i)});
    return all;
}

Result<void> GradientReducer::average_over(int ranks) {
    if (ranks < 1)
        return usage_error("gradients are averaged over at least one rank, not over " +
                           std::to_string(ranks));
    averaged_over_ = ranks;
    return {};
}

// The ranks may have given the step up at different gradients. So each sends what it has not sent,
// and all have made the same calls again. A rank that has not given it up makes another call than
// the barrier: the group then names both.
Result<void> GradientReducer::end_given_up(GpuStream stream) {
    if (!progress_.begun()) return {};
    for (std::size_t i : progress_.missing()) {
        if (auto done = note_written(i, stream); !done) return done;
        if (auto done = ready_now(i); !done) return done;
    }
    for (std::size_t i = 0; i < works_.size(); ++i) {
        if (auto done = works_[i].wait(own_stream()); !done) return done;
        if (auto done = hook_->end(i, bucket(i), own_stream()); !done) return done;
    }
    finished_ = true;
    progress_.begin_again();
    return group_.call(Operation::barrier().of("given-up step"));
}

Result<void> GradientReducer::zero(GpuStream stream) {
    if (auto done = end_given_up(stream); !done) return done;
    if (auto done = hook_->release(); !done) return done;
    quietly_used_.assign(parameters_.size(), false);
    if (on_gpu()) return gpu_zero(block_, plan_.bytes, stream);
    std::memset(block_, 0, plan_.bytes);
    return {};
}

Result<void> GradientReducer::ready(std::size_t parameter, GpuStream stream) {
    std::lock_guard lock(ready_mutex_);
    // Accumulation: the gradients stay in the buckets until a backward pass without no_sync().
    if (quiet_) {
        if (parameter < quietly_used_.size()) quietly_used_[parameter] = true;
        return {};
    }
    if (auto done = note_written(parameter, stream); !done) return done;
    return ready_now(parameter);
}

// The event is recorded here, in the thread and on the stream that has written the gradient. The
// bucket waits for it when all its gradients are ready.
Result<void> GradientReducer::note_written(std::size_t parameter, GpuStream stream) {
    if (!on_gpu() || parameter >= parameters_.size()) return {};
    auto after = GpuEvent::record(stream);
    if (!after) return after.error();
    written_[plan_.slots[parameter].bucket].push_back(std::move(*after));
    return {};
}

Result<void> GradientReducer::ready_now(std::size_t parameter) {
    auto go = progress_.ready(parameter);
    if (!go) return go.error();
    if (std::exchange(finished_, false)) {
        works_.clear();
        begun_.clear();
        if (options_.find_not_finite)
            if (auto done = norm_.reset(0, parameters_.size(), own_stream()); !done) return done;
    }
    for (std::size_t index : *go)
        if (auto done = launch(index); !done) return done;
    return {};
}

// Before the reduction it is still known on which rank a value is wrong. One pass is enough: a sum
// of squares is not finite if one of the values is not.
Result<void> GradientReducer::note_not_finite(std::size_t index) {
    for (std::size_t parameter : plan_.buckets[index].parameters)
        if (auto done = norm_.add(parameter, gradient(parameter), 0, own_stream()); !done)
            return done;
    return {};
}

// A sum over this rank's parts, as that over all gradients.
Result<double> GradientReducer::over_ranks(double mine) {
    if (hook_->shards() == 1) return mine;
    if (auto done = group_.all_reduce_values(std::span(&mine, 1)); !done) return done.error();
    return mine;
}

// Looks at the averaged gradients. The sum has the same bits on all ranks, so all ranks take the
// same branch, and either none or all of them make the collective call that finds the rank.
Result<void> GradientReducer::verify_reduced() {
    if (auto done = norm_.reset(reduced_sum(), 1, own_stream()); !done) return done;
    for (std::size_t i = 0; i < plan_.buckets.size(); ++i)
        if (auto done = norm_.add(reduced_sum(), own_part(i), 0, own_stream()); !done) return done;
    const auto sums = norm_.read(0, parameters_.size() + 2, own_stream());
    if (!sums) return sums.error();
    const auto reduced = over_ranks((*sums)[reduced_sum()]);
    if (!reduced) return reduced.error();
    if (std::isfinite(*reduced)) return {};
    std::optional<std::size_t> mine;
    for (std::size_t i = parameters_.size(); i-- > 0;)
        if (!std::isfinite((*sums)[i])) mine = i;
    if (auto found = verify_none_found(group_, gradients(), mine); !found) return found;
    // Each rank's values are finite, but their sum is not.
    return Error(ErrorCode::malformed, "the sum of the ranks' gradients is not a finite number");
}

// The time is taken before begin(), because Gloo sends its first messages there.
Result<void> GradientReducer::launch(std::size_t index) {
    const auto begun = std::chrono::steady_clock::now();
    for (const GpuEvent& written : std::exchange(written_[index], {}))
        if (auto done = written.before(own_stream()); !done) return done;
    if (options_.find_not_finite)
        if (auto done = note_not_finite(index); !done) return done;
    auto work = hook_->begin(group_, index, bucket(index), own_stream());
    if (!work) return work.error();
    begun_.push_back(begun);
    works_.push_back(std::move(*work));
    return {};
}

// Treats parameters that backward did not reach as ready, so that their buckets are sent. All ranks
// must agree on whether a parameter was used on any rank. If some optimizers updated it and others
// did not, the parameters would drift apart.
Result<void> GradientReducer::mark_unused(GpuStream stream) {
    const auto missing = progress_.missing();
    if (!options_.find_unused) {
        if (missing.empty()) return {};
        return usage_error("backward did not reach " + std::to_string(missing.size()) +
                           " parameters, the first is \"" + parameters_[missing[0]].name +
                           "\"; set find_unused, or call ready() for each");
    }
    std::vector<double> used(parameters_.size(), 1.0);
    for (std::size_t i : missing) {
        used[i] = quietly_used_[i] ? 1.0 : 0.0;
        // Its zeros were written by this stream, or before it.
        if (auto done = note_written(i, stream); !done) return done;
        if (auto done = ready_now(i); !done) return done;
    }
    // By now every rank has begun all buckets, whatever it missed. So this is the next collective
    // call on all of them.
    if (auto done = group_.all_reduce_values(used, ReduceOp::max); !done) return done;
    for (std::size_t i = 0; i < used.size(); ++i) used_[i] = used[i] > 0;
    return {};
}

// Waits for the buckets in their order: on the host, or for a GPU on the stream on which what is
// left to do is done. end() of one bucket runs while later ones are on their way.
Result<void> GradientReducer::finish(GpuStream stream) {
    std::lock_guard lock(ready_mutex_);
    finish_begun_ = std::chrono::steady_clock::now();
    if (quiet_)
        return usage_error(
            "GradientReducer::finish() while no_sync() lasts, which keeps ready() from sending: "
            "end its scope before the last backward pass");
    if (auto done = mark_unused(stream); !done) return done;
    for (std::size_t i = 0; i < works_.size(); ++i) {
        if (auto done = works_[i].wait(own_stream()); !done) return done;
        // Buckets were begun in the order of their numbers, so works_[i] is that of bucket i.
        if (auto done = hook_->end(i, bucket(i), own_stream()); !done) return done;
        if (auto done = weigh(i); !done) return done;
    }
    finished_ = true;
    clipped_to_ = 0;
    quietly_used_.assign(parameters_.size(), false);
    ++steps_;
    // Before the last check, so that the reducer can be used again after a gradient that was not
    // finite.
    progress_.begin_again();
    if (options_.find_not_finite)
        if (auto finite = verify_reduced(); !finite) return finite;
    if (options_.verify_replicas.due(steps_))
        if (auto same = compare_replicas(parameters_, stream); !same) return same;
    if (!on_gpu()) return {};
    auto after = GpuEvent::record(own_stream());
    return after ? after->before(stream) : after.error();
}

// On a GPU the values are there when the program's stream has come so far.
Result<void> GradientReducer::compare_replicas(std::span<const NamedBuffer> parameters,
                                               GpuStream stream) {
    if (on_gpu()) {
        if (gpu_is_captured(stream)) return {};
        const auto now = GpuEvent::record(stream);
        if (!now) return now.error();
        if (auto done = now->wait(); !done) return done;
    }
    const auto same = verify_replicas(group_, parameters, comparisons_++, !shadowing_);
    if (same || same.error().code() != ErrorCode::refused) return same;
    return Error(ErrorCode::refused,
                 "in step " + std::to_string(steps_) + " of this reducer " +
                     same.error().sentence() +
                     ": the replicas have drifted apart; all ranks must make the same updates, "
                     "with the same rate, scale and unused parameters");
}

// The hook has divided by the group's size.
Result<void> GradientReducer::weigh(std::size_t index) {
    if (averaged_over_ == group_.size()) return {};
    const double by = static_cast<double>(averaged_over_) / group_.size();
    return divide_values(group_.memory(), bucket(index), by, own_stream());
}

// Backward computes the last layer first, so the buckets are full in that order.
Result<void> GradientReducer::shadow(GpuStream stream) {
    if (auto done = zero(stream); !done) return done;
    for (std::size_t i = options_.find_unused ? 0 : parameters_.size(); i-- > 0;)
        if (auto done = ready(i, stream); !done) return done;
    shadowing_ = true;
    auto done = finish(stream);
    shadowing_ = false;
    return done;
}

ReduceTimes GradientReducer::times() const {
    std::vector<BucketTime> buckets;
    for (std::size_t i = 0; i < works_.size(); ++i)
        if (const auto ended = works_[i].ended(); ended > begun_[i])
            buckets.push_back({begun_[i], ended});
    return reduce_times(buckets, finish_begun_);
}

// A norm that is not finite leaves the gradients as they are, and the caller sees it.
Result<void> GradientReducer::begin_clip(double most, GpuStream stream) {
    if (!(most >= 0))
        return usage_error("gradients are clipped to a norm of 0 or more, not to " +
                           std::to_string(most));
    clipped_to_ = most;
    if (auto done = norm_.reset(clip_sum(), 1, stream); !done) return done;
    for (std::size_t i = 0; i < plan_.buckets.size(); ++i)
        if (auto done = norm_.add(clip_sum(), own_part(i), 1, stream); !done) return done;
    if (hook_->shards() > 1) {
        const auto mine = norm_.square(clip_sum(), stream);
        if (!mine) return mine.error();
        const auto all = over_ranks(*mine);
        if (!all) return all.error();
        norm_.set(clip_sum(), *all);
    }
    for (std::size_t i = 0; i < plan_.buckets.size(); ++i)
        if (auto done = norm_.clip(clip_sum(), own_part(i), most, stream); !done) return done;
    return {};
}

Result<double> GradientReducer::norm(GpuStream stream) { return norm_.norm(clip_sum(), stream); }

// The norm is equal on all ranks, because the gradients are.
Result<double> GradientReducer::clip(double most, GpuStream stream) {
    if (auto done = begin_clip(most, stream); !done) return done.error();
    return norm(stream);
}

}  // namespace ddprun::trainer
