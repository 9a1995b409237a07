// A small perceptron with one hidden layer, mean squared error and SGD with momentum; on the CPU or
// on a GPU.
//
//   h = tanh(W1 x + b1),  p = w2 · h + b2,  loss = mean (p - y)²;   m ← μ m + g,  θ ← θ - η m
//
// All sums run in one fixed order, so equal input gives equal bits, also after a restart.
// Parameters, momenta and gradients lie where the process group wants them (host or GPU); the
// gradients in a reducer's buckets. Thread: one. Errors: unavailable (GPU), and those of the
// reducer.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/error.h"
#include "trainer/gradients/gradient_reducer.h"

namespace example {

struct MlpShape {
    int inputs = 16;
    int hidden = 64;

    std::size_t parameters() const {
        return static_cast<std::size_t>(hidden) * static_cast<std::size_t>(inputs + 2) + 1;
    }
};

class Mlp {
  public:
    virtual ~Mlp() = default;

    // "w1" (hidden × inputs), "b1" (hidden), "w2" (hidden), "b2" (1), and their momenta
    // "momentum.w1", …: in the order of use, so backward comes to the last one first.
    virtual std::vector<ddprun::trainer::NamedBuffer> parameters() = 0;
    virtual std::vector<ddprun::trainer::NamedBuffer> momenta() = 0;

    // The mean squared error of a batch. backward() is for the batch of the last forward(), which
    // still lies where it was; it adds the gradients to the reducer's and says ready() layer by
    // layer.
    virtual ddprun::Result<float> forward(std::span<const float> x, std::span<const float> y) = 0;
    virtual ddprun::Result<void> backward(ddprun::trainer::GradientReducer& reducer) = 0;

    // One optimizer step with the reducer's gradients.
    virtual ddprun::Result<void> update(const ddprun::trainer::GradientReducer& reducer, float rate,
                                        float momentum) = 0;
};

// `values` (all parameters, or all momenta, one behind the other) cut into the named four.
std::vector<ddprun::trainer::NamedBuffer> named_parts(const MlpShape& shape, float* values,
                                                      const std::string& prefix);

// Glorot-like uniform weights that depend on the seed only.
std::vector<float> initial_parameters(const MlpShape& shape, std::uint64_t seed);

// Both begin with these parameters. The GPU is the one that this thread uses now; mlp_cuda.cc, or
// mlp_cuda_fallback.cc, which refuses.
std::unique_ptr<Mlp> make_cpu_mlp(const MlpShape& shape, std::span<const float> parameters);
ddprun::Result<std::unique_ptr<Mlp>> make_cuda_mlp(const MlpShape& shape,
                                                   std::span<const float> parameters);

}  // namespace example
