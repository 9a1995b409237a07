// The kernels behind gpu.h, as plain functions. Default stream; device pointers.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace ddprun::trainer {

// In a fixed order, so equal input gives equal bits. Waits for the result.
cudaError_t launch_square_sum(const float* values, std::size_t count, double* result);
cudaError_t launch_divide(float* values, std::size_t count, float by);
cudaError_t launch_to_bfloat16(void* to, const float* from, std::size_t count, float by);
cudaError_t launch_from_bfloat16(float* to, const void* from, std::size_t count);

}  // namespace ddprun::trainer
