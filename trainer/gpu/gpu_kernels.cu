// Kernels on gradients: sum of squares, division, conversion to bfloat16 and back.
#include <cuda_bf16.h>

#include "trainer/gpu/gpu_kernels.h"

namespace ddprun::trainer {
namespace {

// A fixed grid, whatever the size of the input: the order of additions depends on it. Each thread
// starts at first() and goes on in steps of stride(). square_sum needs a power of two for kThreads.
constexpr int kThreads = 256;
constexpr int kBlocks = 1024;

__device__ std::size_t first() {
    return blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x;
}
__device__ std::size_t stride() { return static_cast<std::size_t>(gridDim.x) * blockDim.x; }

// Each block adds its values in shared memory, as a tree, and writes one sum. The host adds the
// block sums in their order. Atomic additions would change their order, and so the bits, from run
// to run.
__global__ void square_sum(const float* values, std::size_t count, double* sums) {
    __shared__ double part[kThreads];
    double sum = 0;
    for (std::size_t i = first(); i < count; i += stride())
        sum += static_cast<double>(values[i]) * values[i];
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int half = kThreads / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
}

__global__ void divide(float* values, std::size_t count, float by) {
    for (std::size_t i = first(); i < count; i += stride()) values[i] /= by;
}

__global__ void to_bfloat16(__nv_bfloat16* to, const float* from, std::size_t count, float by) {
    for (std::size_t i = first(); i < count; i += stride()) to[i] = __float2bfloat16(from[i] / by);
}

__global__ void from_bfloat16(float* to, const __nv_bfloat16* from, std::size_t count) {
    for (std::size_t i = first(); i < count; i += stride()) to[i] = __bfloat162float(from[i]);
}

}  // namespace

cudaError_t launch_square_sum(const float* values, std::size_t count, double* result) {
    double* sums = nullptr;
    double host[kBlocks];
    // One sum for each block: the grid is fixed, so their number is known at compile time.
    if (auto p = cudaMalloc(&sums, sizeof host)) return p;
    square_sum<<<kBlocks, kThreads>>>(values, count, sums);
    // The copy waits for the kernel, because both are on the default stream.
    const cudaError_t problem = cudaMemcpy(host, sums, sizeof host, cudaMemcpyDeviceToHost);
    cudaFree(sums);
    *result = 0;
    for (double sum : host) *result += sum;
    return problem;
}

cudaError_t launch_divide(float* values, std::size_t count, float by) {
    divide<<<kBlocks, kThreads>>>(values, count, by);
    return cudaGetLastError();
}

cudaError_t launch_to_bfloat16(void* to, const float* from, std::size_t count, float by) {
    to_bfloat16<<<kBlocks, kThreads>>>(static_cast<__nv_bfloat16*>(to), from, count, by);
    return cudaGetLastError();
}

cudaError_t launch_from_bfloat16(float* to, const void* from, std::size_t count) {
    from_bfloat16<<<kBlocks, kThreads>>>(to, static_cast<const __nv_bfloat16*>(from), count);
    return cudaGetLastError();
}

}  // namespace ddprun::trainer
