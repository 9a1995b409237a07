// MasterWeights: parameters of 16 bits (bfloat16, float16) that are trained in float32. An update
// is often smaller than half the distance of two 16-bit numbers, and would be lost without them.
//
// The optimizer works on weights() with gradients(), both float32:
//
//   reducer.finish();                     // gradients travel and are averaged in 16 bits
//   masters.take_gradients();             // … and widened here
//   masters.clip(1.0);
//   optimizer(masters.weights(), masters.gradients());
//   masters.publish();                    // weights, rounded to nearest, become parameters
//
// Parameters that are float32 or float64 already have no copy: weights() and gradients() are then
// their own memory.
//
// Weights follow from the same gradients on all ranks, so they are equal, too. On GPUs each
// function takes its turn on a stream; only clip() waits on the host. Thread: one at a time.
// Errors: usage (lists that do not fit each other); unavailable (GPU).
#pragma once

#include <vector>

#include "trainer/gradients/gradient_norm.h"
#include "trainer/group/group_memory.h"
#include "trainer/training/agreement.h"

namespace ddprun::trainer {

class MasterWeights {
  public:
    // `parameters` and `gradients` (GradientReducer::gradients()) are of one kind of memory, in the
    // same order, with the same sizes and types; their memory must outlive this object. Begins with
    // take_weights(), so make it after the reducer, which makes the parameters equal on all ranks.
    static Result<MasterWeights> make(Memory kind, std::vector<NamedBuffer> parameters,
                                      std::vector<NamedBuffer> gradients,
                                      GpuStream stream = nullptr);

    // In the order of the parameters, with their names.
    const std::vector<NamedBuffer>& weights() const { return weights_; }
    const std::vector<NamedBuffer>& gradients() const { return wide_gradients_; }

    // The float32 copies, as "master." with the parameter's name: they belong into a snapshot,
    // beside the parameters. Without them a resumed training goes on from rounded weights.
    std::vector<NamedBuffer> state() const;

    // Weights become what the parameters hold, for example of a base model.
    Result<void> take_weights(GpuStream stream = nullptr);
    // gradients() become what the reducer's gradients hold.
    Result<void> take_gradients(GpuStream stream = nullptr);
    // Parameters become the weights, rounded to nearest, ties to even.
    Result<void> publish(GpuStream stream = nullptr);

    // As GradientReducer::clip(), on gradients(): scales them so that their common norm is at most
    // `most`, and returns the norm before that. Without a second rounding to 16 bits.
    Result<double> clip(double most, GpuStream stream = nullptr);

  private:
    Result<void> allocate();

    Memory kind_ = Memory::host;
    std::vector<NamedBuffer> parameters_, gradients_;  // the program's
    std::vector<NamedBuffer> weights_, wide_gradients_;
    GroupMemory memory_;  // all weights of 16-bit parameters, then their gradients
    GradientNorm norm_;
};

}  // namespace ddprun::trainer
