// Kernels on gradients: sum of squares, clipping, division, conversion to 16 bits and back.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "trainer/gpu/gpu_kernels.h"

namespace ddprun::trainer {
namespace {

// A fixed grid, whatever the size of the input: the order of additions depends on it. Each thread
// starts at first() and goes on in steps of stride(). The sums need a power of two for kThreads,
// and kBlocks numbers of scratch memory (kGpuSumScratch).
constexpr int kThreads = 256;
constexpr int kBlocks = 1024;

__device__ std::size_t first() {
    return blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x;
}
__device__ std::size_t stride() { return static_cast<std::size_t>(gridDim.x) * blockDim.x; }

__device__ double wide(float value) { return value; }
__device__ double wide(double value) { return value; }
__device__ double wide(__half value) { return __half2float(value); }
__device__ double wide(__nv_bfloat16 value) { return __bfloat162float(value); }

// Divides as the host does: double in double, the others in float, rounded once.
__device__ float divided(float value, double by) { return value / static_cast<float>(by); }
__device__ double divided(double value, double by) { return value / by; }
__device__ __half divided(__half value, double by) {
    return __float2half(__half2float(value) / static_cast<float>(by));
}
__device__ __nv_bfloat16 divided(__nv_bfloat16 value, double by) {
    return __float2bfloat16(__bfloat162float(value) / static_cast<float>(by));
}

// Adds the numbers of a block's threads as a tree. The result is in part[0].
__device__ void add_up(double* part, double mine) {
    part[threadIdx.x] = mine;
    __syncthreads();
    for (int half = kThreads / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
}

// Each block writes one sum, and one block then adds these. Atomic additions would change their
// order, and so the bits, from run to run.
template <class T>
__global__ void square_sums(double* sums, const T* values, std::size_t count) {
    __shared__ double part[kThreads];
    double sum = 0;
    for (std::size_t i = first(); i < count; i += stride()) {
        const double value = wide(values[i]);
        sum += value * value;
    }
    add_up(part, sum);
    if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
}

__global__ void add_sums(double* total, const double* sums) {
    __shared__ double part[kThreads];
    double sum = 0;
    for (std::size_t i = threadIdx.x; i < kBlocks; i += kThreads) sum += sums[i];
    add_up(part, sum);
    if (threadIdx.x == 0) *total += part[0];
}

// Reads the norm on the GPU, so that the host need not wait for it.
template <class T>
__global__ void clip(T* values, std::size_t count, const double* square_sum, double most) {
    const double norm = sqrt(*square_sum);
    if (!(norm > most) || isinf(norm)) return;
    const double by = norm / most;
    for (std::size_t i = first(); i < count; i += stride()) values[i] = divided(values[i], by);
}

template <class T>
__global__ void divide(T* values, std::size_t count, double by) {
    for (std::size_t i = first(); i < count; i += stride()) values[i] = divided(values[i], by);
}

__device__ void round_to(float& to, float value) { to = value; }
__device__ void round_to(double& to, float value) { to = value; }
__device__ void round_to(__half& to, float value) { to = __float2half(value); }
__device__ void round_to(__nv_bfloat16& to, float value) { to = __float2bfloat16(value); }

template <class T>
__global__ void narrow(T* to, const float* from, std::size_t count, float by) {
    for (std::size_t i = first(); i < count; i += stride()) round_to(to[i], from[i] / by);
}

template <class T>
__global__ void widen(float* to, const T* from, std::size_t count) {
    for (std::size_t i = first(); i < count; i += stride())
        to[i] = static_cast<float>(wide(from[i]));
}

// Calls `launch` with a null pointer of the type's C++ type.
template <class Launch>
cudaError_t by_type(GpuFloat type, Launch launch) {
    switch (type) {
        case GpuFloat::float32:
            launch(static_cast<float*>(nullptr));
            break;
        case GpuFloat::float64:
            launch(static_cast<double*>(nullptr));
            break;
        case GpuFloat::float16:
            launch(static_cast<__half*>(nullptr));
            break;
        case GpuFloat::bfloat16:
            launch(static_cast<__nv_bfloat16*>(nullptr));
            break;
    }
    return cudaGetLastError();
}

}  // namespace

cudaError_t launch_square_sum(double* sum, const void* values, GpuFloat type, std::size_t count,
                              void* scratch, cudaStream_t stream) {
    auto* sums = static_cast<double*>(scratch);
    return by_type(type, [&](auto* null) {
        using T = std::remove_pointer_t<decltype(null)>;
        square_sums<<<kBlocks, kThreads, 0, stream>>>(sums, static_cast<const T*>(values), count);
        add_sums<<<1, kThreads, 0, stream>>>(sum, sums);
    });
}

cudaError_t launch_clip(void* values, GpuFloat type, std::size_t count, const double* square_sum,
                        double most, cudaStream_t stream) {
    return by_type(type, [&](auto* null) {
        using T = std::remove_pointer_t<decltype(null)>;
        clip<<<kBlocks, kThreads, 0, stream>>>(static_cast<T*>(values), count, square_sum, most);
    });
}

cudaError_t launch_divide(void* values, GpuFloat type, std::size_t count, double by,
                          cudaStream_t stream) {
    return by_type(type, [&](auto* null) {
        using T = std::remove_pointer_t<decltype(null)>;
        divide<<<kBlocks, kThreads, 0, stream>>>(static_cast<T*>(values), count, by);
    });
}

cudaError_t launch_narrow(void* to, GpuFloat type, const float* from, std::size_t count, float by,
                          cudaStream_t stream) {
    return by_type(type, [&](auto* null) {
        using T = std::remove_pointer_t<decltype(null)>;
        narrow<<<kBlocks, kThreads, 0, stream>>>(static_cast<T*>(to), from, count, by);
    });
}

cudaError_t launch_widen(float* to, const void* from, GpuFloat type, std::size_t count,
                         cudaStream_t stream) {
    return by_type(type, [&](auto* null) {
        using T = std::remove_pointer_t<decltype(null)>;
        widen<<<kBlocks, kThreads, 0, stream>>>(to, static_cast<const T*>(from), count);
    });
}

}  // namespace ddprun::trainer
