// The GPU kernels of the layers without products and softmax, as functions that cuda_kernels.cc
// calls. They take device pointers, use the default stream, and return when the kernel is launched.
// The meaning of each is that of the function of this name in kernels.h.
#pragma once

#include <cuda_runtime_api.h>

#include "examples/gpt/kernels.h"

namespace example::gpt {

// Sums of columns go through memory of the caller: so many floats.
constexpr long kColumnParts = 128;
constexpr long column_scratch(long width) { return 2 * kColumnParts * width; }

template <class T>
cudaError_t launch_add_rows(float* out, const T* in, long rows, long width, float* scratch);
template <class T>
cudaError_t launch_layer_norm(const LayerNorm& norm, T* out);
template <class T>
cudaError_t launch_layer_norm_backward(const LayerNorm& norm, const T* d_out, float* d_in,
                                       float* d_weight, float* d_bias, float* scratch);
template <class T>
cudaError_t launch_gelu(T* out, const T* in, long count);
template <class T>
cudaError_t launch_gelu_backward(T* d_in, const T* in, const T* d_out, long count);
// Each row of out (rows × width) = bias, or += bias.
template <class T>
cudaError_t launch_bias(T* out, const float* bias, long rows, long width, bool add);
// Rounded to nearest.
cudaError_t launch_narrow(Bfloat16* out, const float* in, long count);
cudaError_t launch_adam(float* values, float* first, float* second, const float* gradient,
                        long count, const AdamStep& step);

}  // namespace example::gpt
