// The GPU's part of the perceptron beside its matrix products (those are cuBLAS's) as plain
// functions: what mlp_cuda.cc launches. Device pointers, the default stream.
//
// No atomics: each output element has one thread that adds in order, so that equal input gives
// equal bits.
#pragma once

#include <cuda_runtime_api.h>

namespace example {

struct MlpDevice {
    int inputs, hidden, batch;
    const float* y;  // batch
    const float *b1, *w2, *b2;
    float* activations;  // batch × hidden; before launch_forward: W1 x
    float* errors;       // batch: prediction - y
    float* loss;         // one
};

// Adds the biases, applies tanh, predicts, and sums the loss up.
cudaError_t launch_forward(const MlpDevice& mlp);

// Adds the gradients of w2 and b2 to theirs.
cudaError_t launch_output_gradients(const MlpDevice& mlp, float* d_w2, float* d_b2);

// Turns the activations into the loss's derivatives by the arguments of tanh, and adds those to b1's
// gradients.
cudaError_t launch_hidden_gradients(const MlpDevice& mlp, float* d_b1);

cudaError_t launch_update(float* parameters, float* momentum, const float* gradients, int count,
                          float rate, float mu);

}  // namespace example
