// The CUDA kernels behind gpu.h, as functions that a C++ compiler can call. They take device
// pointers and use the default stream.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace ddprun::trainer {

// The sum of the squares, added in double and in a fixed order: equal input gives equal bits. Waits
// for the result. The other functions return when the kernel is launched.
cudaError_t launch_square_sum(const float* values, std::size_t count, double* result);
cudaError_t launch_divide(float* values, std::size_t count, float by);
cudaError_t launch_to_bfloat16(void* to, const float* from, std::size_t count, float by);
cudaError_t launch_from_bfloat16(float* to, const void* from, std::size_t count);

}  // namespace ddprun::trainer
