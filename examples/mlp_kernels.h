// The perceptron's GPU kernels, as functions that mlp_cuda.cc calls. (The matrix products are
// cuBLAS's.) They take device pointers and use the default stream.
//
// There are no atomic additions. Each element of the output has one thread, which adds in order, so
// equal input gives equal bits.
#pragma once

#include <cuda_runtime_api.h>

namespace example {

// Sizes, and pointers to GPU memory.
struct MlpDevice {
    int inputs, hidden, batch;
    const float* y;  // batch
    const float *b1, *w2, *b2;
    float* activations;  // batch × hidden; before launch_forward: W1 x
    float* errors;       // batch: prediction - y
    float* loss;         // a single value
};

// Adds the biases, applies tanh, predicts, and computes the loss.
cudaError_t launch_forward(const MlpDevice& mlp);

// Adds the batch's gradients to those of w2 and b2.
cudaError_t launch_output_gradients(const MlpDevice& mlp, float* d_w2, float* d_b2);

// Replaces the activations by the derivatives of the loss with respect to the arguments of tanh.
// Adds them to the gradients of b1.
cudaError_t launch_hidden_gradients(const MlpDevice& mlp, float* d_b1);

// One step of SGD with momentum `mu`.
cudaError_t launch_update(float* parameters, float* momentum, const float* gradients, int count,
                          float rate, float mu);

}  // namespace example
