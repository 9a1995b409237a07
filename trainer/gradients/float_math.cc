// Loops on the host, kernels on the GPU.
#include "trainer/gradients/float_math.h"

#include "trainer/gpu/gpu_math.h"

namespace ddprun::trainer {
namespace {

template <class T>
void widen_as(const Buffer& to, const Buffer& from) {
    for (std::size_t i = 0; i < to.count; ++i)
        static_cast<float*>(to.data)[i] = static_cast<float>(static_cast<const T*>(from.data)[i]);
}

template <class T>
void narrow_as(const Buffer& to, const Buffer& from, float by) {
    for (std::size_t i = 0; i < to.count; ++i)
        static_cast<T*>(to.data)[i] = static_cast<T>(static_cast<const float*>(from.data)[i] / by);
}

}  // namespace

GpuFloat gpu_float_of(DataType type) {
    switch (type) {
        case DataType::float64:
            return GpuFloat::float64;
        case DataType::float16:
            return GpuFloat::float16;
        case DataType::bfloat16:
            return GpuFloat::bfloat16;
        default:
            return GpuFloat::float32;
    }
}

Result<void> divide_values(Memory kind, const Buffer& values, double by, GpuStream stream) {
    if (kind == Memory::gpu)
        return gpu_divide(values.data, gpu_float_of(values.type), values.count, by, stream);
    divide(values, by);
    return {};
}

Result<void> widen(Memory kind, const Buffer& to, const Buffer& from, GpuStream stream) {
    if (kind == Memory::gpu)
        return gpu_widen(static_cast<float*>(to.data), from.data, gpu_float_of(from.type), to.count,
                         stream);
    from.type == DataType::float16 ? widen_as<Half>(to, from) : widen_as<BFloat16>(to, from);
    return {};
}

Result<void> narrow(Memory kind, const Buffer& to, const Buffer& from, float by, GpuStream stream) {
    if (kind == Memory::gpu)
        return gpu_narrow(to.data, gpu_float_of(to.type), static_cast<const float*>(from.data),
                          to.count, by, stream);
    to.type == DataType::float16 ? narrow_as<Half>(to, from, by)
                                 : narrow_as<BFloat16>(to, from, by);
    return {};
}

}  // namespace ddprun::trainer
