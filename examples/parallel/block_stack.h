// The model of tensor_parallel and pipeline: a stack of residual blocks, of which a rank may have
// only some, or of each only some hidden units.
//
//   block:  y = x + c + sum over hidden units h of  v_h tanh(u_h · x + b_h)
//
// u ("up", kHidden × kWidth) and b are cut by columns in the words of tensor parallelism: each rank
// computes its own hidden units and needs nobody for it. v ("down", kHidden × kWidth) is cut by
// rows: each rank adds up what its hidden units give, and the sum over ranks is the layer's output.
// c is on all of them.
//
// Memory of the host. Thread: one. Errors: those of the reducer, as exceptions (Failure).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "trainer/gradients/gradient_reducer.h"
#include "trainer/tensors/tensor.h"

namespace example {

constexpr std::size_t kBlocks = 4, kWidth = 64, kHidden = 512;

// Which blocks, and which of their hidden units, a rank has.
struct Cut {
    std::size_t first_block = 0, end_block = kBlocks, first_hidden = 0, end_hidden = kHidden;
};

// What backward() needs of a forward pass: of each block its input (samples × kWidth) and its
// hidden units (samples × this rank's).
struct Pass {
    std::vector<std::vector<float>> inputs, hidden;
    std::vector<float> output;  // samples × kWidth
};

// Adds up over the ranks that share a layer, in place. Empty: this rank has all of it.
using Sum = std::function<void(std::span<float>)>;

class BlockStack {
  public:
    // The first values depend only on their place in the whole model.
    explicit BlockStack(const Cut& cut);

    // For the reducer: up, up_bias, down, down_bias of each block.
    std::vector<ddprun::trainer::NamedBuffer> parameters();
    // For snapshots: parameters and momenta as slices of the whole model. Several ranks bring c.
    std::vector<ddprun::trainer::Tensor> slices();

    Pass forward(std::vector<float> input, const Sum& sum) const;

    // Adds to the reducer's gradients and says ready() for each block, the last one first. `slope`
    // is the derivative of the loss with respect to the output; returned is that with respect to
    // the input.
    std::vector<float> backward(const Pass& pass, std::vector<float> slope, const Sum& sum,
                                ddprun::trainer::GradientReducer& reducer) const;

    // SGD with momentum 0.9.
    void update(const ddprun::trainer::GradientReducer& reducer, float rate);

  private:
    std::size_t hidden() const { return cut_.end_hidden - cut_.first_hidden; }

    const Cut cut_;
    std::vector<std::vector<float>> parameters_, momenta_;
};

}  // namespace example
