// Layer norm, GELU, biases and AdamW. Three forms: a warp for each row, a thread for each number,
// and sums of columns in two stages.
#include "examples/gpt/layer_kernels.h"

#include <cstdint>

#include "examples/gpt/kernel_parts.cuh"

namespace example::gpt {
namespace {

__device__ long own_index() { return static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x; }

// Sums of columns, first stage: a block has 32 × 8 threads, and sums some of the rows of 32 × N
// columns. Of K sums, scratch gets [sum][part][column]. `values` gives what a row adds to N
// columns.
template <int K, int N, class F>
__device__ void sum_part(float* scratch, long rows, long width, F values) {
    __shared__ float sums[kWarps][kWarp * N];
    const long first = static_cast<long>(blockIdx.x) * kWarp * N, column = first + threadIdx.x * N;
    float sum[K][N] = {};
    if (column < width) {
        for (long r = blockIdx.y * kWarps + threadIdx.y; r < rows; r += gridDim.y * kWarps) {
            float x[K][N];
            values(r, column, x);
            for (int k = 0; k < K; ++k)
                for (int i = 0; i < N; ++i) sum[k][i] += x[k][i];
        }
    }
    for (int k = 0; k < K; ++k) {
        __syncthreads();
        for (int i = 0; i < N; ++i) sums[threadIdx.y][threadIdx.x * N + i] = sum[k][i];
        __syncthreads();
        const long own = threadIdx.y * kWarp + threadIdx.x;
        if (own >= kWarp * N || first + own >= width) continue;
        float total = 0;
        for (int y = 0; y < kWarps; ++y) total += sums[y][own];
        scratch[(static_cast<long>(k) * gridDim.y + blockIdx.y) * width + first + own] = total;
    }
}

// Second stage: thread (x, y) sums every eighth part of column x, and those of y = 0 the rest.
__global__ void add_parts(float* out, float* second, const float* scratch, long parts, long width) {
    __shared__ float sums[kWarps][kWarp];
    const long column = static_cast<long>(blockIdx.x) * kWarp + threadIdx.x;
    const float* from = scratch + blockIdx.y * parts * width;
    float sum = 0;
    if (column < width)
        for (long p = threadIdx.y; p < parts; p += kWarps) sum += from[p * width + column];
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y != 0 || column >= width) return;
    for (int y = 1; y < kWarps; ++y) sum += sums[y][threadIdx.x];
    (blockIdx.y == 0 ? out : second)[column] += sum;
}

// The shapes of their launches.
long parts_of(long rows) {
    const long most = (rows + kWarps - 1) / kWarps;
    return most < kColumnParts ? most : kColumnParts;
}
dim3 part_blocks(long rows, long width, int pack) {
    return dim3(blocks_for(width, kWarp * pack), static_cast<unsigned>(parts_of(rows)));
}
dim3 part_threads() { return dim3(kWarp, kWarps); }

template <int N, class T>
__global__ void add_rows(float* scratch, const T* in, long rows, long width) {
    sum_part<1, N>(scratch, rows, width, [=](long r, long column, float(&x)[1][N]) {
        load(x[0], in + r * width + column);
    });
}

template <int N, class T>
__global__ void layer_norm_columns(LayerNorm n, const T* d_out, float* scratch) {
    sum_part<2, N>(scratch, n.rows, n.width, [=](long r, long column, float(&x)[2][N]) {
        float in[N];
        load(in, n.in + r * n.width + column);
        load(x[1], d_out + r * n.width + column);
        const float mean = n.mean[r], rstd = n.rstd[r];
        for (int i = 0; i < N; ++i) x[0][i] = x[1][i] * (in[i] - mean) * rstd;
    });
}

template <int N, class T>
__global__ void layer_norm(LayerNorm n, T* out) {
    const long row = row_of_warp();
    if (row >= n.rows) return;
    const float* in = n.in + row * n.width;
    float sum = 0, square = 0, x[N];
    each_pack<N>(n.width, [&](long c) {
        load(x, in + c);
        for (int i = 0; i < N; ++i) sum += x[i];
    });
    const float mean = sum_over_warp(sum) / n.width;
    each_pack<N>(n.width, [&](long c) {
        load(x, in + c);
        for (int i = 0; i < N; ++i) square += (x[i] - mean) * (x[i] - mean);
    });
    const float rstd = rsqrtf(sum_over_warp(square) / n.width + 1e-5f);
    each_pack<N>(n.width, [&](long c) {
        float weight[N], bias[N];
        load(x, in + c);
        load(weight, n.weight + c);
        load(bias, n.bias + c);
        for (int i = 0; i < N; ++i) x[i] = (x[i] - mean) * rstd * weight[i] + bias[i];
        store(out + row * n.width + c, x);
    });
    if (threadIdx.x % kWarp == 0) {
        n.mean[row] = mean;
        n.rstd[row] = rstd;
    }
}

// The formula stands in cpu_layers.h.
template <int N, class T>
__global__ void layer_norm_rows(LayerNorm n, const T* d_out, float* d_in) {
    const long row = row_of_warp();
    if (row >= n.rows) return;
    const float* in = n.in + row * n.width;
    const T* d = d_out + row * n.width;
    float* to = d_in + row * n.width;
    const float mean = n.mean[row], rstd = n.rstd[row];
    // Of N columns: g and x̂ of the formula.
    float g[N], x[N];
    auto at = [&](long c) {
        float weight[N];
        load(g, d + c);
        load(x, in + c);
        load(weight, n.weight + c);
        for (int i = 0; i < N; ++i) {
            g[i] *= weight[i];
            x[i] = (x[i] - mean) * rstd;
        }
    };
    float sum = 0, sum_in = 0;
    each_pack<N>(n.width, [&](long c) {
        at(c);
        for (int i = 0; i < N; ++i) {
            sum += g[i];
            sum_in += g[i] * x[i];
        }
    });
    sum = sum_over_warp(sum) / n.width;
    sum_in = sum_over_warp(sum_in) / n.width;
    each_pack<N>(n.width, [&](long c) {
        float own[N];
        at(c);
        load(own, to + c);
        for (int i = 0; i < N; ++i) own[i] += rstd * (g[i] - sum - x[i] * sum_in);
        store(to + c, own);
    });
}

constexpr float kGelu = 0.7978845608f, kCubic = 0.044715f;  // sqrt(2 / pi)

template <int N, class T>
__global__ void gelu(T* out, const T* in, long count) {
    const long at = own_index() * N;
    if (at >= count) return;
    float x[N];
    load(x, in + at);
    for (int i = 0; i < N; ++i)
        x[i] = 0.5f * x[i] * (1 + tanhf(kGelu * (x[i] + kCubic * x[i] * x[i] * x[i])));
    store(out + at, x);
}

template <int N, class T>
__global__ void gelu_backward(T* d_in, const T* in, const T* d_out, long count) {
    const long at = own_index() * N;
    if (at >= count) return;
    float x[N], d[N];
    load(x, in + at);
    load(d, d_out + at);
    for (int i = 0; i < N; ++i) {
        const float t = tanhf(kGelu * (x[i] + kCubic * x[i] * x[i] * x[i]));
        const float slope = kGelu * (1 + 3 * kCubic * x[i] * x[i]);
        d[i] *= 0.5f * (1 + t + x[i] * (1 - t * t) * slope);
    }
    store(d_in + at, d);
}

template <int N, class T>
__global__ void bias_rows(T* out, const float* bias, long rows, long width, bool add) {
    const long row = row_of_warp();
    if (row >= rows) return;
    T* to = out + row * width;
    each_pack<N>(width, [&](long c) {
        // A bias is not aligned where the network's width is odd and that of the layer is not.
        float x[N] = {};
        if (add) load(x, to + c);
        for (int i = 0; i < N; ++i) x[i] += bias[c + i];
        store(to + c, x);
    });
}

template <int N>
__global__ void narrow_each(Bfloat16* out, const float* in, long count) {
    const long at = own_index() * N;
    if (at >= count) return;
    float x[N];
    load(x, in + at);
    store(out + at, x);
}

__global__ void adam(float* values, float* first, float* second, const float* gradient, long count,
                     AdamStep s) {
    const long i = own_index();
    if (i >= count) return;
    const float g = gradient[i];
    const float value = values[i] * (1 - s.rate * s.decay);
    first[i] += (g - first[i]) * (1 - s.beta1);
    second[i] = second[i] * s.beta2 + (1 - s.beta2) * g * g;
    values[i] = value - s.rate / s.correction1 * first[i] /
                            (sqrtf(second[i]) / sqrtf(s.correction2) + s.epsilon);
}

}  // namespace

template <class T>
cudaError_t launch_add_rows(float* out, const T* in, long rows, long width, float* scratch) {
    return launch_packed(width, [=](auto pack) {
        constexpr int N = decltype(pack)::value;
        add_rows<N><<<part_blocks(rows, width, N), part_threads()>>>(scratch, in, rows, width);
        add_parts<<<blocks_for(width, kWarp), part_threads()>>>(out, nullptr, scratch,
                                                                parts_of(rows), width);
    });
}

template <class T>
cudaError_t launch_layer_norm(const LayerNorm& norm, T* out) {
    return launch_packed(norm.width, [=](auto pack) {
        layer_norm<decltype(pack)::value><<<row_blocks(norm.rows), kThreads>>>(norm, out);
    });
}

template <class T>
cudaError_t launch_layer_norm_backward(const LayerNorm& norm, const T* d_out, float* d_in,
                                       float* d_weight, float* d_bias, float* scratch) {
    return launch_packed(norm.width, [=](auto pack) {
        constexpr int N = decltype(pack)::value;
        layer_norm_rows<N><<<row_blocks(norm.rows), kThreads>>>(norm, d_out, d_in);
        layer_norm_columns<N>
            <<<part_blocks(norm.rows, norm.width, N), part_threads()>>>(norm, d_out, scratch);
        add_parts<<<dim3(blocks_for(norm.width, kWarp), 2), part_threads()>>>(
            d_weight, d_bias, scratch, parts_of(norm.rows), norm.width);
    });
}

template <class T>
cudaError_t launch_gelu(T* out, const T* in, long count) {
    return launch_packed(count, [=](auto pack) {
        constexpr int N = decltype(pack)::value;
        gelu<N><<<blocks_for(count / N), kThreads>>>(out, in, count);
    });
}

template <class T>
cudaError_t launch_gelu_backward(T* d_in, const T* in, const T* d_out, long count) {
    return launch_packed(count, [=](auto pack) {
        constexpr int N = decltype(pack)::value;
        gelu_backward<N><<<blocks_for(count / N), kThreads>>>(d_in, in, d_out, count);
    });
}

template <class T>
cudaError_t launch_bias(T* out, const float* bias, long rows, long width, bool add) {
    return launch_packed(width, [=](auto pack) {
        bias_rows<decltype(pack)::value>
            <<<row_blocks(rows), kThreads>>>(out, bias, rows, width, add);
    });
}

cudaError_t launch_narrow(Bfloat16* out, const float* in, long count) {
    // Parameters of an odd width begin anywhere.
    const auto place = reinterpret_cast<std::uintptr_t>(out) | reinterpret_cast<std::uintptr_t>(in);
    return launch_packed(place % 32 == 0 ? count : 1, [=](auto pack) {
        constexpr int N = decltype(pack)::value;
        narrow_each<N><<<blocks_for(count / N), kThreads>>>(out, in, count);
    });
}

cudaError_t launch_adam(float* values, float* first, float* second, const float* gradient,
                        long count, const AdamStep& step) {
    adam<<<blocks_for(count), kThreads>>>(values, first, second, gradient, count, step);
    return cudaGetLastError();
}

#define GPT_LAYERS(T)                                                                           \
    template cudaError_t launch_add_rows(float*, const T*, long, long, float*);                 \
    template cudaError_t launch_layer_norm(const LayerNorm&, T*);                               \
    template cudaError_t launch_layer_norm_backward(const LayerNorm&, const T*, float*, float*, \
                                                    float*, float*);                            \
    template cudaError_t launch_gelu(T*, const T*, long);                                       \
    template cudaError_t launch_gelu_backward(T*, const T*, const T*, long);                    \
    template cudaError_t launch_bias(T*, const float*, long, long, bool);
GPT_LAYERS(float)
GPT_LAYERS(Bfloat16)

}  // namespace example::gpt
