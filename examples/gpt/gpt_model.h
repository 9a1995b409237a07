// A GPT-2 with forward and backward passes of its own. Its kernels decide whether it runs on the
// CPU or on a GPU.
//
// Parameters and AdamW's two moments lie in one block each, in the process group's kind of memory.
// The gradients lie in the buckets of a reducer. Sums run in a fixed order: with equal input the
// CPU gives equal bits, whatever the number of threads; the GPU's cuBLAS does so on one kind of
// GPU. Thread: one. Errors: unavailable (GPU), and those of the reducer.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/error.h"
#include "examples/gpt/gpt_shape.h"
#include "examples/gpt/kernels.h"
#include "examples/gpt/text.h"
#include "trainer/gradients/gradient_reducer.h"

namespace example::gpt {

// AdamW's settings for one step.
struct AdamOptions {
    float rate = 1e-3f;
    float beta1 = 0.9f, beta2 = 0.95f, epsilon = 1e-8f;
    float decay = 0.1f;     // of matrices; biases and norms do not decay
    std::int64_t step = 1;  // from 1
};

class Gpt {
  public:
    virtual ~Gpt() = default;

    virtual const GptShape& shape() const = 0;
    // The parameters as tensors() orders them. Who writes to them calls parameters() before: then
    // the next forward() knows that they are others. The moments: "adam_m.NAME" of all, then
    // "adam_v.NAME".
    virtual std::vector<ddprun::trainer::NamedBuffer> parameters() = 0;
    virtual std::vector<ddprun::trainer::NamedBuffer> moments() = 0;

    // The mean loss of a batch. `share`: how much the batch counts in the gradient, for example 1/4
    // if four batches are accumulated.
    virtual ddprun::Result<double> forward(const Batch& batch, float share) = 0;
    // For the batch of the last forward(), once. Adds the gradients to the reducer's memory and
    // calls ready() layer by layer, the last one first.
    virtual ddprun::Result<void> backward(ddprun::trainer::GradientReducer& reducer) = 0;
    // One step of AdamW with the averaged gradients of the reducer.
    virtual ddprun::Result<void> update(const ddprun::trainer::GradientReducer& reducer,
                                        const AdamOptions& options) = 0;
    // How likely each token is after these, as logits. At most `context` tokens.
    virtual ddprun::Result<std::vector<float>> next(std::span<const int> tokens) = 0;
};

// Views of a block of values (parameters, or one moment), with a prefix before the names.
std::vector<ddprun::trainer::NamedBuffer> named_tensors(const GptShape& shape, float* values,
                                                        const std::string& prefix);
// Of the two moments, which lie one after the other.
std::vector<ddprun::trainer::NamedBuffer> named_moments(const GptShape& shape, float* values);

// What the kernels of AdamW need for one parameter.
AdamStep adam_step(const AdamOptions& options, const Tensor& tensor);

// A network that begins with these parameters. `memory`: where the kernels work; on a GPU that is
// the thread's current one. `kernels` must outlive it. With kernels of bfloat16 the parameters and
// their moments are float32 all the same; products take a rounded copy of them. T: float, Bfloat16.
// Errors: unavailable (no memory).
template <class T>
ddprun::Result<std::unique_ptr<Gpt>> make_gpt(const GptShape& shape,
                                              std::span<const float> parameters,
                                              const BasicKernels<T>& kernels,
                                              ddprun::trainer::Memory memory);

}  // namespace example::gpt
