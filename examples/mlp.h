// A small perceptron with one hidden layer, mean squared error and SGD with momentum; on the CPU or
// on a GPU.
//
//   h = tanh(W1 x + b1),  p = w2 · h + b2,  loss = mean (p - y)²;   m ← μ m + g,  θ ← θ - η m
//
// All sums run in one fixed order, so equal input gives equal bits, also after a restart. The
// gradient buffer has two elements more than there are parameters, so that the loss and one flag
// travel in the same all-reduce. It lies where the process group wants it (host or GPU). Thread:
// one. Errors: unavailable (GPU).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "proto/error.h"
#include "trainer/process_group.h"

namespace example {

struct MlpShape {
    int inputs = 16;
    int hidden = 64;

    // W1 (hidden × inputs), b1 (hidden), w2 (hidden), b2 (1), one behind the other.
    std::size_t parameters() const {
        return static_cast<std::size_t>(hidden) * static_cast<std::size_t>(inputs + 2) + 1;
    }
};

class Mlp {
  public:
    virtual ~Mlp() = default;

    // Parameters, or momentum, as they are on the host.
    virtual ddprun::Result<std::vector<float>> parameters() const = 0;
    virtual ddprun::Result<std::vector<float>> momentum() const = 0;
    virtual ddprun::Result<void> restore(std::span<const float> parameters,
                                         std::span<const float> momentum) = 0;

    // Forward and backward of one batch: fills gradients(), then its loss, then `flag`.
    virtual ddprun::Result<void> compute(std::span<const float> x, std::span<const float> y,
                                         float flag) = 0;
    virtual ddprun::trainer::Buffer gradients() = 0;

    // The averaged loss and flag, after the all-reduce.
    struct Tail {
        float loss = 0;
        float flag = 0;
    };
    virtual ddprun::Result<Tail> tail() const = 0;

    // One optimizer step with what gradients() holds now.
    virtual ddprun::Result<void> update(float rate, float momentum) = 0;
};

// Glorot-like uniform weights that depend on the seed only.
std::vector<float> initial_parameters(const MlpShape& shape, std::uint64_t seed);

std::unique_ptr<Mlp> make_cpu_mlp(const MlpShape& shape);

// On the GPU that this thread uses now. mlp_cuda.cc, or mlp_cuda_fallback.cc, which refuses.
ddprun::Result<std::unique_ptr<Mlp>> make_cuda_mlp(const MlpShape& shape);

}  // namespace example
