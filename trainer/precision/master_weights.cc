// One block of float32 for what is narrower elsewhere.
#include "trainer/precision/master_weights.h"

#include <cmath>

#include "trainer/gradients/float_math.h"

namespace ddprun::trainer {
namespace {

// From which address on each list's part begins: vector instructions work best so.
constexpr std::size_t kAlignment = 256;

std::size_t aligned(std::size_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

Result<void> fit(const std::vector<NamedBuffer>& parameters,
                 const std::vector<NamedBuffer>& gradients) {
    if (parameters.size() != gradients.size())
        return usage_error("master weights of " + std::to_string(parameters.size()) +
                           " parameters and " + std::to_string(gradients.size()) +
                           " gradients; give the same list as to the reducer");
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const Buffer &p = parameters[i].buffer, &g = gradients[i].buffer;
        if (p.count == g.count && p.type == g.type && !is_integer(p.type)) continue;
        return usage_error("parameter \"" + parameters[i].name + "\" has " +
                           std::to_string(p.count) + " " + std::string(to_string(p.type)) +
                           ", and its gradient \"" + gradients[i].name + "\" " +
                           std::to_string(g.count) + " " + std::string(to_string(g.type)) +
                           "; both must be equal, of a floating type");
    }
    return {};
}

}  // namespace

Result<MasterWeights> MasterWeights::make(Memory kind, std::vector<NamedBuffer> parameters,
                                          std::vector<NamedBuffer> gradients, GpuStream stream) {
    if (auto done = fit(parameters, gradients); !done) return done.error();
    MasterWeights made;
    made.kind_ = kind;
    made.parameters_ = std::move(parameters);
    made.gradients_ = std::move(gradients);
    if (auto done = made.allocate(); !done) return done.error();
    if (auto done = made.take_weights(stream); !done) return done.error();
    return made;
}

Result<void> MasterWeights::allocate() {
    std::size_t bytes = 0;
    for (const auto& [name, p] : parameters_)
        if (is_half(p.type)) bytes += 2 * aligned(p.count * sizeof(float));
    if (bytes) {
        auto memory = GroupMemory::make(kind_, bytes);
        if (!memory) return memory.error();
        memory_ = std::move(*memory);
    }
    char* at = static_cast<char*>(memory_.data());
    // Copies lie in `memory_`, whatever is wide already is used where it is.
    auto wide = [&](const NamedBuffer& own) -> NamedBuffer {
        if (!is_half(own.buffer.type)) return own;
        Buffer copy{at, own.buffer.count, DataType::float32};
        at += aligned(copy.bytes());
        return {own.name, copy};
    };
    for (const auto& p : parameters_) weights_.push_back(wide(p));
    for (std::size_t i = 0; i < gradients_.size(); ++i) {
        wide_gradients_.push_back(wide(gradients_[i]));
        wide_gradients_.back().name = parameters_[i].name;
    }
    return norm_.prepare(kind_, 1);
}

std::vector<NamedBuffer> MasterWeights::state() const {
    std::vector<NamedBuffer> copies;
    for (std::size_t i = 0; i < parameters_.size(); ++i)
        if (is_half(parameters_[i].buffer.type))
            copies.push_back({"master." + parameters_[i].name, weights_[i].buffer});
    return copies;
}

Result<void> MasterWeights::take_weights(GpuStream stream) {
    for (std::size_t i = 0; i < parameters_.size(); ++i)
        if (is_half(parameters_[i].buffer.type))
            if (auto done = widen(kind_, weights_[i].buffer, parameters_[i].buffer, stream); !done)
                return done;
    return {};
}

Result<void> MasterWeights::take_gradients(GpuStream stream) {
    for (std::size_t i = 0; i < gradients_.size(); ++i)
        if (is_half(gradients_[i].buffer.type))
            if (auto done = widen(kind_, wide_gradients_[i].buffer, gradients_[i].buffer, stream);
                !done)
                return done;
    return {};
}

Result<void> MasterWeights::publish(GpuStream stream) {
    for (std::size_t i = 0; i < parameters_.size(); ++i)
        if (is_half(parameters_[i].buffer.type))
            if (auto done = narrow(kind_, parameters_[i].buffer, weights_[i].buffer, 1, stream);
                !done)
                return done;
    return {};
}

Result<double> MasterWeights::clip(double most, GpuStream stream) {
    if (auto done = norm_.reset(0, 1, stream); !done) return done.error();
    for (const auto& [name, gradient] : wide_gradients_)
        if (auto done = norm_.add(0, gradient, 0, stream); !done) return done.error();
    for (const auto& [name, gradient] : wide_gradients_)
        if (auto done = norm_.clip(0, gradient, most, stream); !done) return done.error();
    const auto sum = norm_.read(0, 1, stream);
    if (!sum) return sum.error();
    return std::sqrt(sum->front());
}

}  // namespace ddprun::trainer
