// Which GPUs this process sees. One header, two sources: gpu_cuda.cc when the build found CUDA,
// gpu_fallback.cc else.
//
// Links the static CUDA runtime only: a program with it starts where there is no driver, and sees
// no GPU there.
#pragma once

#include <cstddef>
#include <string>

#include "base/error.h"

namespace ddprun::trainer {

// GPUs that are visible and usable now; 0 without a driver or without CUDA in the build. Any
// thread.
int gpu_count();

// A name that no other GPU of the job has: host name and PCI address (for a MIG slice also its
// UUID). Empty on error.
std::string gpu_name(int index);

// Why there are as many as there are, for a message: "2 GPUs", "no NVIDIA driver", "built without
// CUDA".
std::string gpu_state();

// Memory of this thread's GPU, filled with zeros. Errors: unavailable.
Result<void*> gpu_allocate(std::size_t bytes);
void gpu_free(void* memory);

// Between host and GPU, or within either; returns when the bytes are there.
Result<void> gpu_copy(void* to, const void* from, std::size_t bytes);
Result<void> gpu_zero(void* memory, std::size_t bytes);

// On float values in GPU memory: the sum of their squares, dividing them, and to bfloat16 (divided
// first) and back.
Result<double> gpu_square_sum(const float* values, std::size_t count);
Result<void> gpu_divide(float* values, std::size_t count, float by);
Result<void> gpu_to_bfloat16(void* to, const float* from, std::size_t count, float by);
Result<void> gpu_from_bfloat16(float* to, const void* from, std::size_t count);

}  // namespace ddprun::trainer
