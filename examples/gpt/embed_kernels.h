// The GPU kernels of the embedding, as functions that cuda_kernels.cc calls. They take device
// pointers, use the default stream, and return when the kernel is launched. The meaning of each is
// that of the function of this name in kernels.h.
#pragma once

#include <cuda_runtime_api.h>

#include "examples/gpt/kernels.h"

namespace example::gpt {

cudaError_t launch_embed(float* out, const int* tokens, const float* of_token,
                         const float* of_position, long rows, long length, long width);
cudaError_t launch_embed_backward(float* d_of_token, float* d_of_position, const WordRows& words,
                                  const float* d_out, long rows, long length, long width);

}  // namespace example::gpt
