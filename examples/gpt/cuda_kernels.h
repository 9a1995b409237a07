// The kernels for the thread's current GPU. cuda_kernels_fallback.cc is for builds without CUDA.
#pragma once

#include "base/error.h"
#include "examples/gpt/kernels.h"

namespace example::gpt {

// How a GPU multiplies matrices. All numbers in memory are float32 in both.
enum class Precision {
    float32,   // as exactly as on the CPU
    bfloat16,  // on tensor cores: factors are rounded to bfloat16, sums are float32
};

// The table stays valid until the process ends. All kernels and cuBLAS use the default stream. Call
// it with one precision only. Errors: unavailable (no CUDA in this build, no cuBLAS, no GPU).
ddprun::Result<const Kernels*> cuda_kernels(Precision precision);

}  // namespace example::gpt
