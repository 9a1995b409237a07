// What the GPU kernels share: rows for warps, sums over a warp, several numbers read at a time.
//
// There are no atomic additions. The order of each sum is fixed, so equal input gives equal bits.
#pragma once

#include <cuda_bf16.h>

#include "examples/gpt/kernels.h"

namespace example::gpt {

constexpr int kWarp = 32;
constexpr int kThreads = 256;  // of a block
constexpr int kWarps = kThreads / kWarp;

// Several numbers that are read or written at once.
template <class T, int N>
struct alignas(sizeof(T) * N) Pack {
    T values[N];
};

__device__ inline float wide(float x) { return x; }
__device__ inline float wide(Bfloat16 x) {
    return __uint_as_float(static_cast<unsigned>(x.bits) << 16);
}
template <class T>
__device__ T narrow(float x);
template <>
__device__ inline Bfloat16 narrow<Bfloat16>(float x) {
    return {__bfloat16_as_ushort(__float2bfloat16_rn(x))};
}
template <>
__device__ inline float narrow<float>(float x) {
    return x;
}

template <int N, class T>
__device__ void load(float (&to)[N], const T* from) {
    const auto pack = *reinterpret_cast<const Pack<T, N>*>(from);
    for (int i = 0; i < N; ++i) to[i] = wide(pack.values[i]);
}
template <int N, class T>
__device__ void store(T* to, const float (&from)[N]) {
    Pack<T, N> pack;
    for (int i = 0; i < N; ++i) pack.values[i] = narrow<T>(from[i]);
    *reinterpret_cast<Pack<T, N>*>(to) = pack;
}

template <int N>
struct Number {
    static constexpr int value = N;
};

// Calls f with how many numbers a thread can read at a time in rows of this width, and returns what
// the launch said.
template <class F>
cudaError_t launch_packed(long width, F f) {
    if (width % 8 == 0) {
        f(Number<8>());
    } else {
        f(Number<1>());
    }
    return cudaGetLastError();
}

inline unsigned blocks_for(long count, long each = kThreads) {
    return static_cast<unsigned>((count + each - 1) / each);
}

// The form of most kernels: a warp for each row.
inline unsigned row_blocks(long rows) { return blocks_for(rows, kWarps); }
__device__ inline long row_of_warp() {
    return static_cast<long>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
}
// Calls f with the first columns of all packs of this lane.
template <int N, class F>
__device__ void each_pack(long width, F f) {
    for (long c = threadIdx.x % kWarp * N; c < width; c += kWarp * N) f(c);
}

__device__ inline float sum_over_warp(float value) {
    for (int far = kWarp / 2; far > 0; far /= 2) value += __shfl_xor_sync(~0u, value, far);
    return value;
}
__device__ inline float most_over_warp(float value) {
    for (int far = kWarp / 2; far > 0; far /= 2)
        value = fmaxf(value, __shfl_xor_sync(~0u, value, far));
    return value;
}

}  // namespace example::gpt
