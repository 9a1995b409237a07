// Arithmetic on buffers of floating types, on the host or on the GPU: division, and the way between
// float32 and the 16-bit types.
//
// On a GPU each function takes its turn on a stream and returns at once. Thread: any. Errors:
// unavailable (GPU).
#pragma once

#include "base/error.h"
#include "trainer/gpu/gpu_float.h"
#include "trainer/gpu/gpu_stream.h"
#include "trainer/group/group_memory.h"
#include "trainer/group/operation.h"

namespace ddprun::trainer {

// Whether a type is one of the 16-bit floats.
constexpr bool is_half(DataType type) {
    return type == DataType::float16 || type == DataType::bfloat16;
}

// A floating type as kernels know it.
GpuFloat gpu_float_of(DataType type);

// Divides each value by `by`, in float or wider, and rounds once.
Result<void> divide_values(Memory kind, const Buffer& values, double by, GpuStream stream);

// `to` is float32, `from` a 16-bit type, both of one length. Exact.
Result<void> widen(Memory kind, const Buffer& to, const Buffer& from, GpuStream stream);

// `to` is a 16-bit type, `from` float32. Divides by `by`, and then rounds to nearest, ties to even.
Result<void> narrow(Memory kind, const Buffer& to, const Buffer& from, float by, GpuStream stream);

}  // namespace ddprun::trainer
