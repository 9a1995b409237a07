// The CUDA kernels behind gpu_math.h, as functions that a C++ compiler can call. gpu_math.h says
// what they do. They return when the kernel is launched.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "trainer/gpu/gpu_float.h"

namespace ddprun::trainer {

cudaError_t launch_square_sum(double* sum, const void* values, GpuFloat type, std::size_t count,
                              void* scratch, cudaStream_t stream);
cudaError_t launch_clip(void* values, GpuFloat type, std::size_t count, const double* square_sum,
                        double most, cudaStream_t stream);
cudaError_t launch_divide(void* values, GpuFloat type, std::size_t count, double by,
                          cudaStream_t stream);
cudaError_t launch_narrow(void* to, GpuFloat type, const float* from, std::size_t count, float by,
                          cudaStream_t stream);
cudaError_t launch_widen(float* to, const void* from, GpuFloat type, std::size_t count,
                         cudaStream_t stream);

}  // namespace ddprun::trainer
