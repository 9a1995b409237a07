// Kernels on gradients in GPU memory, without CUDA headers (gpu.h has the implementations).
//
// Each takes its turn on a stream and returns at once. None allocates memory, so all may be
// captured into a graph. Counts are in elements. Errors: unavailable.
#pragma once

#include <cstddef>

#include "base/error.h"
#include "trainer/gpu/gpu.h"
#include "trainer/gpu/gpu_float.h"

namespace ddprun::trainer {

// GPU memory that a sum needs while it runs: sums on one stream can share it.
inline constexpr std::size_t kGpuSumScratch = 1024 * sizeof(double);

// Adds the squares of all values to *sum, a number on the GPU, in double and in a fixed order:
// equal input gives equal bits. The result is not finite if one of the values is not.
Result<void> gpu_add_square_sum(double* sum, const void* values, GpuFloat type, std::size_t count,
                                void* scratch, GpuStream stream);

// Scales the values so that a norm, whose square is the number *square_sum on the GPU, becomes
// `most`. A norm that is not greater than that, or a NaN, leaves them as they are.
Result<void> gpu_clip(void* values, GpuFloat type, std::size_t count, const double* square_sum,
                      double most, GpuStream stream);

// Divides each value by `by`.
Result<void> gpu_divide(void* values, GpuFloat type, std::size_t count, double by,
                        GpuStream stream);

// From float32 to a 16-bit type, and back. The first divides each value by `by` before it rounds.
Result<void> gpu_narrow(void* to, GpuFloat type, const float* from, std::size_t count, float by,
                        GpuStream stream);
Result<void> gpu_widen(float* to, const void* from, GpuFloat type, std::size_t count,
                       GpuStream stream);

}  // namespace ddprun::trainer
