// The GPU's part of the perceptron as plain functions: what mlp_cuda.cc launches. Device pointers,
// one stream (default).
//
// No atomics: each output element has one thread that adds in order, so that equal input gives
// equal bits.
#pragma once

#include <cuda_runtime_api.h>

namespace example {

struct MlpDevice {
    int inputs, hidden, batch;
    const float* x;  // batch × inputs
    const float* y;  // batch
    const float* parameters;
    float* activations;  // batch × hidden
    float* errors;       // batch: prediction - y
    float* gradients;    // parameters, loss, flag
    float flag;
};

cudaError_t launch_gradients(const MlpDevice& mlp);
cudaError_t launch_update(float* parameters, float* momentum, const float* gradients, int count,
                          float rate, float mu);

}  // namespace example
