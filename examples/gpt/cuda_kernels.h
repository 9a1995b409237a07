// The kernels for the thread's current GPU. cuda_kernels_fallback.cc is for builds without CUDA.
#pragma once

#include "base/error.h"
#include "examples/gpt/kernels.h"

namespace example::gpt {

// For T = float, which computes as exactly as the CPU, and for T = Bfloat16, on tensor cores:
// factors of matrix products are bfloat16, their sums are float32.
//
// The table stays valid until the process ends. All kernels and cuBLAS use the default stream.
// Errors: unavailable (no CUDA in this build, no cuBLAS, no GPU).
template <class T>
ddprun::Result<const BasicKernels<T>*> cuda_kernels();

}  // namespace example::gpt
