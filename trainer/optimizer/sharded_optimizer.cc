// Reduces, updates and gathers the buckets part by part.
#include "trainer/optimizer/sharded_optimizer.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ddprun::trainer {

// Each bucket is reduced in place: this rank's part gets the mean, the others become garbage.
class ShardedOptimizer::Hook final : public CommunicationHook {
  public:
    Hook(ShardedOptimizer& owner, int ranks)
        : owner_(owner), ranks_(static_cast<std::size_t>(ranks)) {}

    Result<Work> begin(ProcessGroup& group, std::size_t index, const Buffer& bucket,
                       GpuStream stream) override {
        return group.begin(
            Operation::reduce_scatter(bucket, owner_.reducer_->own_part(index), ReduceOp::avg)
                .on(stream)
                .of("gradients"));
    }
    Result<void> end(std::size_t /*index*/, const Buffer& /*bucket*/,
                     GpuStream /*stream*/) override {
        owner_.averaged_ = true;
        return {};
    }
    std::size_t shards() const override { return ranks_; }
    // The parameters travel in the memory of the gradients.
    Result<void> release() override {
        owner_.averaged_ = false;
        return owner_.wait();
    }

  private:
    ShardedOptimizer& owner_;
    const std::size_t ranks_;
};

namespace {

std::vector<Buffer> buffers_of(const std::vector<NamedBuffer>& parameters) {
    std::vector<Buffer> buffers;
    for (const auto& parameter : parameters) buffers.push_back(parameter.buffer);
    return buffers;
}

}  // namespace

ShardedOptimizer::ShardedOptimizer(ProcessGroup& group, std::vector<NamedBuffer> parameters,
                                   const OptimizerRule& rule)
    : group_(group),
      parameters_(std::move(parameters)),
      rule_(rule),
      late_(buffers_of(parameters_),
            "call ShardedOptimizer::wait() after step(), before the parameters are saved") {}

// The gathers write to the memory of the reducer.
ShardedOptimizer::~ShardedOptimizer() {
    if (comparison_) (void)comparison_->wait();
    for (const auto& work : gathers_) (void)work.wait();
}

namespace {

constexpr char kOptimizer[] = "optimizer";  // in messages, and compared by the ranks

// Each rank's state follows its own rule, and the parameters of all are put together.
Result<void> compare_rules(ProcessGroup& group, const OptimizerRule& rule) {
    auto mine = numbers_of(rule);
    std::vector<double> all(mine.size() * static_cast<std::size_t>(group.size()));
    auto done =
        group.call(Operation::all_gather(buffer_of(std::span(mine)), buffer_of(std::span(all)))
                       .of(kOptimizer));
    if (!done) return done;
    const auto found = first_difference(all, mine.size());
    if (!found) return {};
    const auto number = [&](std::size_t rank) {
        return describe_number(found->index, all[rank * mine.size() + found->index]);
    };
    return Error(ErrorCode::refused, "rank " + std::to_string(found->rank) +
                                         " makes a ShardedOptimizer with " + number(found->rank) +
                                         ", and rank 0 with " + number(0) +
                                         "; all ranks must give the same OptimizerRule");
}

}  // namespace

Result<std::unique_ptr<ShardedOptimizer>> ShardedOptimizer::make(
    ProcessGroup& group, std::vector<NamedBuffer> parameters, const OptimizerRule& rule,
    ReducerOptions options, std::vector<NamedBuffer> buffers) {
    if (group.memory() == Memory::gpu)
        return Error(ErrorCode::refused,
                     "a ShardedOptimizer updates parameters in host memory, and those of this "
                     "group are on GPUs; use the backend gloo, or an optimizer without sharding");
    if (options.hook)
        return usage_error(
            "a ShardedOptimizer has a communication hook of its own; leave "
            "ReducerOptions::hook empty");
    for (const auto& p : parameters)
        if (p.buffer.type != DataType::float32)
            return Error(ErrorCode::refused, "parameter \"" + p.name + "\" is " +
                                                 std::string(to_string(p.buffer.type)) +
                                                 "; a ShardedOptimizer takes F32");
    if (auto same = compare_rules(group, rule); !same) return same.error();
    std::unique_ptr<ShardedOptimizer> made(new ShardedOptimizer(group, parameters, rule));
    made->hook_ = std::make_shared<Hook>(*made, group.size());
    options.hook = made->hook_;
    auto reducer = GradientReducer::make(group, std::move(parameters), options, std::move(buffers));
    if (!reducer) return reducer.error();
    made->reducer_ = std::move(*reducer);
    made->make_state();
    return made;
}

void ShardedOptimizer::make_state() {
    std::vector<GradientShape> shapes;
    for (const auto& p : parameters_) shapes.push_back({p.buffer.count, p.buffer.type});
    pieces_ = shard_pieces(reducer_->plan(), shapes, static_cast<std::size_t>(group_.rank()),
                           static_cast<std::size_t>(group_.size()));
    std::size_t elements = 0;
    for (const auto& piece : pieces_) elements += piece.count;
    state_.assign(state_names(rule_).size(), std::vector<float>(elements));
}

// The new values go to the parameter and, for the other ranks, to where the gradient was.
void ShardedOptimizer::update_piece(const ShardPiece& piece, std::size_t at, float rate) {
    float* value = static_cast<float*>(parameters_[piece.parameter].buffer.data) + piece.first;
    float* gradient = static_cast<float*>(reducer_->bucket(piece.bucket).data) + piece.at;
    std::vector<std::span<float>> state;
    for (auto& all : state_) state.push_back(std::span(all).subspan(at, piece.count));
    update(rule_, steps_, rate, {value, piece.count}, {gradient, piece.count}, state);
    std::memcpy(gradient, value, piece.count * sizeof(float));
}

// In the order of the buckets, which is that of finish(): the first one is on its way while the
// next is updated. The pieces are in the order of the parameters, and so in the opposite one.
Result<void> ShardedOptimizer::step(float rate) {
    if (auto done = wait(); !done) return done;
    if (!std::exchange(averaged_, false))
        return usage_error(
            "ShardedOptimizer::step() needs the averaged gradients of a step of its own: call the "
            "reducer's zero(), backward and finish() before each");
    ++steps_;
    numbers_.add(steps_, rate, reducer_->clipped_to());
    if (numbers_.due()) begin_comparison();
    late_.set_late(true);
    std::size_t at = state_.empty() ? 0 : state_[0].size();
    std::size_t piece = pieces_.size();
    for (std::size_t bucket = 0; bucket < reducer_->plan().buckets.size(); ++bucket) {
        while (piece > 0 && pieces_[piece - 1].bucket == bucket) {
            --piece;
            if (!state_.empty()) at -= pieces_[piece].count;
            update_piece(pieces_[piece], at, rate);
        }
        gathers_.push_back(
            group_.begin(Operation::all_gather(reducer_->own_part(bucket), reducer_->bucket(bucket))
                             .of("parameters")));
    }
    return {};
}

// It is on its way before the parameters, and wait() looks at it.
void ShardedOptimizer::begin_comparison() {
    own_numbers_ = numbers_.words();
    all_numbers_.resize(StepNumbers::kWords * static_cast<std::size_t>(group_.size()));
    comparison_ = group_.begin(Operation::all_gather(buffer_of(std::span<double>(own_numbers_)),
                                                     buffer_of(std::span(all_numbers_)))
                                   .of(kOptimizer));
}

// Steps differ on all ranks, and so all return the same error.
Result<void> ShardedOptimizer::compare_steps() {
    if (!comparison_) return {};
    auto done = std::exchange(comparison_, std::nullopt)->wait();
    if (!done) return done;
    const auto differ = step_disagreement(all_numbers_);
    return differ ? Error(ErrorCode::refused, *differ) : Result<void>();
}

Result<void> ShardedOptimizer::wait() {
    Result<void> result = compare_steps();
    for (std::size_t bucket = 0; bucket < gathers_.size(); ++bucket) {
        auto done = gathers_[bucket].wait();
        if (done)
            copy_others(bucket);
        else if (result)
            result = done;
    }
    gathers_.clear();
    if (result) late_.set_late(false);
    return result;
}

// From the bucket to the parameters. This rank's own elements have the same bits there.
void ShardedOptimizer::copy_others(std::size_t bucket) {
    for (std::size_t parameter : reducer_->plan().buckets[bucket].parameters) {
        const Buffer& to = parameters_[parameter].buffer;
        std::memcpy(to.data, reducer_->gradient(parameter).data, to.bytes());
    }
}

std::vector<Tensor> ShardedOptimizer::state() {
    std::vector<Tensor> tensors;
    // SGD does not count.
    if (rule_.kind != OptimizerRule::Kind::sgd)
        tensors.push_back(tensor("optimizer.step", {}, std::span(&steps_, 1)));
    const auto names = state_names(rule_);
    for (std::size_t kind = 0; kind < names.size(); ++kind) {
        std::size_t at = 0;
        auto piece = pieces_.begin();
        for (std::size_t parameter = 0; parameter < parameters_.size(); ++parameter) {
            const auto& [name, buffer] = parameters_[parameter];
            ShardPiece own{parameter};
            if (piece != pieces_.end() && piece->parameter == parameter) own = *piece++;
            tensors.push_back(slice_of(names[kind] + name, {buffer.count}, {own.first}, {own.count},
                                       std::span(state_[kind]).subspan(at, own.count)));
            at += own.count;
        }
    }
    return tensors;
}

std::uint64_t ShardedOptimizer::state_bytes() const {
    std::uint64_t bytes = 0;
    for (const auto& values : state_) bytes += values.size() * sizeof(float);
    return bytes;
}

std::uint64_t ShardedOptimizer::whole_state_bytes() const {
    std::uint64_t elements = 0;
    for (const auto& p : parameters_) elements += p.buffer.count;
    return elements * state_.size() * sizeof(float);
}

}  // namespace ddprun::trainer
