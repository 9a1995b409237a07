// A small perceptron with one hidden layer, mean squared error, and SGD with momentum, on the CPU
// or on a GPU.
//
//   h = tanh(W1 x + b1),  p = w2 · h + b2,  loss = mean (p - y)²;   m ← μ m + g,  θ ← θ - η m
//
// On the CPU parameters and gradients may be bfloat16 or float16: the network computes in float32
// with what these hold, and each gradient is rounded once. All sums run in a fixed order, so equal
// input gives equal bits, also after a restart. Parameters and momenta lie in the process group's
// kind of memory (host or GPU). The gradients lie in the buckets of a reducer. Thread: one. Errors:
// unavailable (GPU), and those of the reducer.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/error.h"
#include "trainer/gradients/gradient_reducer.h"

namespace example {

// The sizes of the layers. There is one output.
struct MlpShape {
    int inputs = 16;
    int hidden = 64;

    // W1, b1, w2 and b2 together.
    std::size_t parameters() const {
        return static_cast<std::size_t>(hidden) * static_cast<std::size_t>(inputs + 2) + 1;
    }
};

class Mlp {
  public:
    virtual ~Mlp() = default;

    // "w1" (hidden × inputs), "b1" (hidden), "w2" (hidden), "b2" (1). Their momenta have the names
    // "momentum.w1", …. The order is that of use, so backward reaches the last one first.
    virtual std::vector<ddprun::trainer::NamedBuffer> parameters() = 0;
    virtual std::vector<ddprun::trainer::NamedBuffer> momenta() = 0;

    // forward() returns the mean squared error of a batch. backward() is for the batch of the last
    // forward(), whose memory must still be there. It adds the gradients of the loss times `scale`
    // to the reducer's memory and calls ready() layer by layer. On a GPU the scale is 1.
    virtual ddprun::Result<float> forward(std::span<const float> x, std::span<const float> y) = 0;
    virtual ddprun::Result<void> backward(ddprun::trainer::GradientReducer& reducer,
                                          float scale = 1) = 0;

    // One step of the optimizer. `weights`: parameters(), or the master weights of 16-bit ones.
    // `gradients`: their averaged gradients, in the same order. All are float32.
    virtual ddprun::Result<void> update(std::span<const ddprun::trainer::NamedBuffer> weights,
                                        std::span<const ddprun::trainer::NamedBuffer> gradients,
                                        float rate, float momentum) = 0;
};

// Cuts `values` (all parameters or all momenta, one after the other) into the four named parts.
std::vector<ddprun::trainer::NamedBuffer> named_parts(
    const MlpShape& shape, void* values, const std::string& prefix,
    ddprun::trainer::DataType type = ddprun::trainer::DataType::float32);

// Uniform weights with a range of 1 / sqrt(inputs of the layer). They depend only on shape and
// seed, so all ranks begin equal.
std::vector<float> initial_parameters(const MlpShape& shape, std::uint64_t seed);

// Both begin with these parameters. `type`: float32, bfloat16 or float16, of parameters and
// gradients. The GPU is the thread's current one. A build without CUDA has
// mlp_cuda_fallback.cc, whose make_cuda_mlp() returns the error `unavailable`.
std::unique_ptr<Mlp> make_cpu_mlp(
    const MlpShape& shape, std::span<const float> parameters,
    ddprun::trainer::DataType type = ddprun::trainer::DataType::float32);
ddprun::Result<std::unique_ptr<Mlp>> make_cuda_mlp(const MlpShape& shape,
                                                   std::span<const float> parameters);

}  // namespace example
