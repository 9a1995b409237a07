// GPUs for code that is compiled without CUDA headers: how many there are, their memory, and a few
// operations on gradients.
//
// One header, two sources: gpu_cuda.cc if the build found CUDA, else gpu_fallback.cc, which reports
// no GPU. The CUDA runtime is linked statically, so the program also starts on a machine without a
// driver and sees no GPU there. The functions use the calling thread's current GPU and its default
// stream.
#pragma once

#include <cstddef>
#include <string>

#include "base/error.h"

namespace ddprun::trainer {

// How many GPUs this process can use now. 0 without a driver, and 0 in a build without CUDA. Any
// thread.
int gpu_count();

// A name that no other GPU of the job has: host name, PCI address and UUID. Empty on an error.
std::string gpu_name(int index);

// Explains gpu_count() in a message: "2 GPUs", "no NVIDIA driver, or one too old,", "built without
// CUDA".
std::string gpu_state();

// Memory on the current GPU, filled with zeros. Errors: unavailable.
Result<void*> gpu_allocate(std::size_t bytes);
void gpu_free(void* memory);

// Copies between host and GPU, or within one of them. Returns when the bytes have arrived.
Result<void> gpu_copy(void* to, const void* from, std::size_t bytes);
// Fills GPU memory with zeros, in the order of the default stream.
Result<void> gpu_zero(void* memory, std::size_t bytes);

// Kernels on float values in GPU memory. `count` is in elements. gpu_square_sum() waits for its
// result. The others only start the kernel: what follows on the default stream sees their result.
// gpu_to_bfloat16() divides each value by `by` before it rounds.
Result<double> gpu_square_sum(const float* values, std::size_t count);
Result<void> gpu_divide(float* values, std::size_t count, float by);
Result<void> gpu_to_bfloat16(void* to, const float* from, std::size_t count, float by);
Result<void> gpu_from_bfloat16(float* to, const void* from, std::size_t count);

}  // namespace ddprun::trainer
