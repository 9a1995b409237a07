// The floating types that kernels compute with. Also compiled by nvcc.
#pragma once

namespace ddprun::trainer {

enum class GpuFloat { float32, float64, float16, bfloat16 };

}  // namespace ddprun::trainer
