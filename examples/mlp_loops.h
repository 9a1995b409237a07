// The loops over the perceptron's numbers on the CPU, which take nearly all of its time.
//
// mlp_loops.cc is compiled with -ffast-math, so that the compiler makes vectors of its sums and of
// tanh. The order of a sum depends on the sizes alone, so equal input gives equal bits; infinities
// and NaNs come out where they went in. All arrays are floats, and no two of them overlap.
#pragma once

namespace example {

// A network. W1 has `hidden` rows of `inputs`.
struct MlpNumbers {
    long inputs, hidden;
    const float* w1;
    const float* b1;
    const float* w2;
    float b2;
};

// Of all samples (rows of `x`): the hidden units' activations, samples × hidden, and the
// predictions.
void predict(const MlpNumbers& net, const float* x, long samples, float* activations,
             float* predictions);

// Both add the gradients of a batch. `slopes`: the derivatives of the loss with respect to the
// predictions.
void add_output_gradients(const MlpNumbers& net, const float* activations, const float* slopes,
                          long samples, float* d_w2, float* d_b2);
void add_hidden_gradients(const MlpNumbers& net, const float* x, const float* activations,
                          const float* slopes, long samples, float* d_w1, float* d_b1);

// SGD: m ← momentum m + g, θ ← θ - rate m.
void descend(float* values, float* momenta, const float* gradients, long count, float rate,
             float momentum);

}  // namespace example
