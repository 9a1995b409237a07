// The GPU kernels of softmax, in attention and as the loss, as functions that cuda_kernels.cc
// calls. They take device pointers, use the default stream, and return when the kernel is launched.
#pragma once

#include <cuda_runtime_api.h>

#include "examples/gpt/kernels.h"

namespace example::gpt {

// Scores (rows × length, in the order of batch, head, position) become shares: causal softmax.
template <class T>
cudaError_t launch_softmax(T* scores, long rows, long length);
// `d` holds the derivatives of the shares, and gets those of the scores × scale.
template <class T>
cudaError_t launch_softmax_backward(T* d, const T* shares, long rows, long length, float scale);
// As kernels.h has it.
template <class T>
cudaError_t launch_cross_entropy(const BasicLogits<T>& logits, float* losses, float scale);

}  // namespace example::gpt
