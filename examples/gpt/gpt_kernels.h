// The GPT's GPU kernels, as functions that cuda_kernels.cc calls. (The matrix products are
// cuBLAS's.) They take device pointers, use the default stream, and return when the kernel is
// launched. The meaning of each is that of the function of this name in kernels.h.
//
// There are no atomic additions. The order of each sum is fixed, so equal input gives equal bits.
#pragma once

#include <cuda_runtime_api.h>

#include "examples/gpt/kernels.h"

namespace example::gpt {

cudaError_t launch_add_rows(float* out, const float* in, long rows, long width);
cudaError_t launch_layer_norm(const LayerNorm& norm, float* out);
cudaError_t launch_layer_norm_backward(const LayerNorm& norm, const float* d_out, float* d_in,
                                       float* d_weight, float* d_bias);
// Scores (rows × length, in the order of batch, head, position) become shares: causal softmax.
cudaError_t launch_softmax(float* scores, long rows, long length);
// `d` holds the derivatives of the shares, and gets those of the scores × scale.
cudaError_t launch_softmax_backward(float* d, const float* shares, long rows, long length,
                                    float scale);
cudaError_t launch_gelu(float* out, const float* in, long count);
cudaError_t launch_gelu_backward(float* d_in, const float* in, const float* d_out, long count);
// Each row of out (rows × width) = bias, or += bias.
cudaError_t launch_bias(float* out, const float* bias, long rows, long width, bool add);
cudaError_t launch_embed(float* out, const int* tokens, const float* of_token,
                         const float* of_position, long rows, long length, long width);
// `words`: rows of d_of_token.
cudaError_t launch_embed_backward(float* d_of_token, float* d_of_position, const int* tokens,
                                  const float* d_out, long rows, long length, long width,
                                  long words);
cudaError_t launch_cross_entropy(float* logits, float* losses, const int* targets, long rows,
                                 long words, float scale);
cudaError_t launch_adam(float* values, float* first, float* second, const float* gradient,
                        long count, const AdamStep& step);

}  // namespace example::gpt
