// Softmax over the positions before, and over the words. The largest number and the sum are found
// in one pass: a sum is made smaller when a larger number comes.
#include "examples/gpt/softmax_kernels.h"

#include "examples/gpt/kernel_parts.cuh"

namespace example::gpt {
namespace {

// Of some numbers x: the largest one, and the sum of exp(x - most).
struct Softmax {
    float most, sum;

    template <int N>
    __device__ void add(const float (&x)[N]) {
        float larger = most;
        for (int i = 0; i < N; ++i) larger = fmaxf(larger, x[i]);
        if (larger == -INFINITY) return;
        sum *= __expf(most - larger);
        for (int i = 0; i < N; ++i) sum += __expf(x[i] - larger);
        most = larger;
    }
    // How much the sum counts beside a larger number.
    __device__ float sum_at(float larger) const {
        return most == -INFINITY ? 0 : sum * __expf(most - larger);
    }
    __device__ Softmax over_warp() const {
        const float larger = most_over_warp(most);
        return {larger, sum_over_warp(sum_at(larger))};
    }
};

__device__ Softmax of_none() { return {-INFINITY, 0}; }

// N numbers from column c on; those from `end` on count as nothing.
template <int N, class T>
__device__ void load_until(float (&to)[N], const T* row, long c, long end) {
    load(to, row + c);
    for (int i = 0; i < N; ++i)
        if (c + i >= end) to[i] = -INFINITY;
}

template <int N, class T>
__global__ void softmax(T* scores, long rows, long length) {
    const long index = row_of_warp();
    if (index >= rows) return;
    T* row = scores + index * length;
    const long end = index % length + 1;
    float x[N];
    Softmax own = of_none();
    each_pack<N>(end, [&](long c) {
        load_until(x, row, c, end);
        own.add(x);
    });
    own = own.over_warp();
    const float one = 1 / own.sum;
    each_pack<N>(length, [&](long c) {
        if (c < end) {
            load_until(x, row, c, end);
            for (int i = 0; i < N; ++i) x[i] = one * __expf(x[i] - own.most);
        } else {
            for (int i = 0; i < N; ++i) x[i] = 0;
        }
        store(row + c, x);
    });
}

template <int N, class T>
__global__ void softmax_backward(T* d_shares, const T* shares, long rows, long length,
                                 float scale) {
    const long index = row_of_warp();
    if (index >= rows) return;
    T* d_row = d_shares + index * length;
    const T* row = shares + index * length;
    // The shares from there on are 0.
    const long end = index % length + 1;
    float d[N], share[N], sum = 0;
    each_pack<N>(end, [&](long c) {
        load(d, d_row + c);
        load(share, row + c);
        for (int i = 0; i < N; ++i) sum += d[i] * share[i];
    });
    sum = sum_over_warp(sum);
    each_pack<N>(length, [&](long c) {
        for (int i = 0; i < N; ++i) d[i] = share[i] = 0;
        if (c < end) {
            load(d, d_row + c);
            load(share, row + c);
        }
        for (int i = 0; i < N; ++i) d[i] = share[i] * (d[i] - sum) * scale;
        store(d_row + c, d);
    });
}

constexpr int kLossThreads = 512;

// A block for each row of logits.
template <int N, class T>
__global__ void cross_entropy(BasicLogits<T> l, float* losses, float scale) {
    __shared__ Softmax parts[kLossThreads / kWarp];
    T* row = l.logits + blockIdx.x * l.row;
    const int target = l.targets[blockIdx.x];
    const float at_target = wide(row[target]);
    float x[N];
    Softmax own = of_none();
    for (long w = threadIdx.x * N; w < l.words; w += kLossThreads * N) {
        load_until(x, row, w, l.words);
        own.add(x);
    }
    own = own.over_warp();
    if (threadIdx.x % kWarp == 0) parts[threadIdx.x / kWarp] = own;
    // All threads have read the target's logit when they are past it.
    __syncthreads();
    const int lane = threadIdx.x % kWarp;
    own = (lane < kLossThreads / kWarp ? parts[lane] : of_none()).over_warp();
    const float one = 1 / own.sum;
    for (long w = threadIdx.x * N; w < l.row; w += kLossThreads * N) {
        load_until(x, row, w, l.words);
        for (int i = 0; i < N; ++i)
            x[i] = scale * (one * __expf(x[i] - own.most) - (w + i == target ? 1 : 0));
        store(row + w, x);
    }
    if (threadIdx.x == 0) losses[blockIdx.x] = logf(own.sum) - (at_target - own.most);
}

}  // namespace

template <class T>
cudaError_t launch_softmax(T* scores, long rows, long length) {
    return launch_packed(length, [=](auto pack) {
        softmax<decltype(pack)::value><<<row_blocks(rows), kThreads>>>(scores, rows, length);
    });
}

template <class T>
cudaError_t launch_softmax_backward(T* d, const T* shares, long rows, long length, float scale) {
    return launch_packed(length, [=](auto pack) {
        softmax_backward<decltype(pack)::value>
            <<<row_blocks(rows), kThreads>>>(d, shares, rows, length, scale);
    });
}

template <class T>
cudaError_t launch_cross_entropy(const BasicLogits<T>& logits, float* losses, float scale) {
    return launch_packed(logits.row, [=](auto pack) {
        cross_entropy<decltype(pack)::value>
            <<<static_cast<unsigned>(logits.rows), kLossThreads>>>(logits, losses, scale);
    });
}

#define GPT_SOFTMAX(T)                                                             \
    template cudaError_t launch_softmax(T*, long, long);                           \
    template cudaError_t launch_softmax_backward(T*, const T*, long, long, float); \
    template cudaError_t launch_cross_entropy(const BasicLogits<T>&, float*, float);
GPT_SOFTMAX(float)
GPT_SOFTMAX(Bfloat16)

}  // namespace example::gpt
