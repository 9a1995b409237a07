// The GPT's kernels. Three forms: a thread for each number, a block for each row, and a block for
// 32 columns.
#include "examples/gpt/gpt_kernels.h"

namespace example::gpt {
namespace {

constexpr int kThreads = 256;  // of a block
constexpr int kWarp = 32;

unsigned blocks_for(long count) { return static_cast<unsigned>((count + kThreads - 1) / kThreads); }

__device__ long own_index() { return static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x; }

struct Sum {
    __device__ float operator()(float a, float b) const { return a + b; }
};
struct Most {
    __device__ float operator()(float a, float b) const { return a > b ? a : b; }
};

// The sum (or maximum) over all threads of a block, as a tree. Each thread gets it.
template <class F>
__device__ float over_block(float value, F f) {
    __shared__ float values[kThreads];
    // The last call's result may still be read.
    __syncthreads();
    values[threadIdx.x] = value;
    for (int half = kThreads / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            values[threadIdx.x] = f(values[threadIdx.x], values[threadIdx.x + half]);
    }
    __syncthreads();
    return values[0];
}

// Sums of columns: a block has 32 × 8 threads. Thread (x, y) sums every eighth row of column x, and
// then those of y = 0 add the eight parts. `value` gives the number of a row.
template <class F>
__device__ void add_column(float* out, long rows, long column, long width, F value) {
    __shared__ float parts[kThreads / kWarp][kWarp];
    float sum = 0;
    if (column < width)
        for (long r = threadIdx.y; r < rows; r += blockDim.y) sum += value(r);
    __syncthreads();
    parts[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y != 0 || column >= width) return;
    for (int y = 1; y < kThreads / kWarp; ++y) sum += parts[y][threadIdx.x];
    out[column] += sum;
}

__global__ void add_rows(float* out, const float* in, long rows, long width) {
    const long column = static_cast<long>(blockIdx.x) * kWarp + threadIdx.x;
    add_column(out, rows, column, width, [=](long r) { return in[r * width + column]; });
}

__global__ void layer_norm(LayerNorm n, float* out) {
    const long row = blockIdx.x;
    const float* in = n.in + row * n.width;
    float sum = 0, square = 0;
    for (long c = threadIdx.x; c < n.width; c += kThreads) sum += in[c];
    const float mean = over_block(sum, Sum()) / n.width;
    for (long c = threadIdx.x; c < n.width; c += kThreads)
        square += (in[c] - mean) * (in[c] - mean);
    const float rstd = rsqrtf(over_block(square, Sum()) / n.width + 1e-5f);
    for (long c = threadIdx.x; c < n.width; c += kThreads)
        out[row * n.width + c] = (in[c] - mean) * rstd * n.weight[c] + n.bias[c];
    if (threadIdx.x == 0) {
        n.mean[row] = mean;
        n.rstd[row] = rstd;
    }
}

// The formula stands in cpu_layers.h.
__global__ void layer_norm_rows(LayerNorm n, const float* d_out, float* d_in) {
    const long row = blockIdx.x;
    const float* in = n.in + row * n.width;
    const float* d = d_out + row * n.width;
    const float mean = n.mean[row], rstd = n.rstd[row];
    float sum = 0, sum_in = 0;
    for (long c = threadIdx.x; c < n.width; c += kThreads) {
        const float g = d[c] * n.weight[c];
        sum += g;
        sum_in += g * (in[c] - mean) * rstd;
    }
    sum = over_block(sum, Sum()) / n.width;
    sum_in = over_block(sum_in, Sum()) / n.width;
    for (long c = threadIdx.x; c < n.width; c += kThreads)
        d_in[row * n.width + c] +=
            rstd * (d[c] * n.weight[c] - sum - (in[c] - mean) * rstd * sum_in);
}

__global__ void layer_norm_columns(LayerNorm n, const float* d_out, float* d_weight,
                                   float* d_bias) {
    const long column = static_cast<long>(blockIdx.x) * kWarp + threadIdx.x;
    add_column(d_weight, n.rows, column, n.width, [=](long r) {
        const long at = r * n.width + column;
        return d_out[at] * (n.in[at] - n.mean[r]) * n.rstd[r];
    });
    add_column(d_bias, n.rows, column, n.width,
               [=](long r) { return d_out[r * n.width + column]; });
}

__global__ void softmax(float* scores, long length) {
    float* row = scores + blockIdx.x * length;
    const long position = blockIdx.x % length;
    float most = -INFINITY, sum = 0;
    for (long j = threadIdx.x; j <= position; j += kThreads) most = Most()(most, row[j]);
    most = over_block(most, Most());
    for (long j = threadIdx.x; j < length; j += kThreads) {
        row[j] = j <= position ? expf(row[j] - most) : 0;
        sum += row[j];
    }
    sum = over_block(sum, Sum());
    for (long j = threadIdx.x; j <= position; j += kThreads) row[j] /= sum;
}

__global__ void softmax_backward(float* d_shares, const float* shares, long length, float scale) {
    float* d = d_shares + blockIdx.x * length;
    const float* share = shares + blockIdx.x * length;
    float sum = 0;
    for (long j = threadIdx.x; j < length; j += kThreads) sum += d[j] * share[j];
    sum = over_block(sum, Sum());
    for (long j = threadIdx.x; j < length; j += kThreads) d[j] = share[j] * (d[j] - sum) * scale;
}

constexpr float kGelu = 0.7978845608f, kCubic = 0.044715f;  // sqrt(2 / pi)

__global__ void gelu(float* out, const float* in, long count) {
    const long i = own_index();
    if (i >= count) return;
    const float x = in[i];
    out[i] = 0.5f * x * (1 + tanhf(kGelu * (x + kCubic * x * x * x)));
}

__global__ void gelu_backward(float* d_in, const float* in, const float* d_out, long count) {
    const long i = own_index();
    if (i >= count) return;
    const float x = in[i];
    const float t = tanhf(kGelu * (x + kCubic * x * x * x));
    const float slope = kGelu * (1 + 3 * kCubic * x * x);
    d_in[i] = d_out[i] * 0.5f * (1 + t + x * (1 - t * t) * slope);
}

__global__ void bias_rows(float* out, const float* bias, long count, long width, bool add) {
    const long i = own_index();
    if (i < count) out[i] = (add ? out[i] : 0) + bias[i % width];
}

__global__ void embed(float* out, const int* tokens, const float* of_token,
                      const float* of_position, long count, long length, long width) {
    const long i = own_index();
    if (i >= count) return;
    const long row = i / width, column = i % width;
    out[i] = of_token[tokens[row] * width + column] + of_position[row % length * width + column];
}

// A block for each word: it looks for the rows that have it, and adds them in their order.
__global__ void embed_words(float* d_of_token, const int* tokens, const float* d_out, long rows,
                            long width) {
    const int word = blockIdx.x;
    for (long r = 0; r < rows; ++r) {
        if (tokens[r] != word) continue;
        for (long c = threadIdx.x; c < width; c += kThreads)
            d_of_token[word * width + c] += d_out[r * width + c];
    }
}

__global__ void embed_positions(float* d_of_position, const float* d_out, long rows, long length,
                                long width) {
    const long i = own_index();
    if (i >= length * width) return;
    float sum = 0;
    for (long at = i; at < rows * width; at += length * width) sum += d_out[at];
    d_of_position[i] += sum;
}

__global__ void cross_entropy(float* logits, float* losses, const int* targets, long words,
                              float scale) {
    float* row = logits + blockIdx.x * words;
    const int target = targets[blockIdx.x];
    const float at_target = row[target];
    float most = -INFINITY, sum = 0;
    for (long w = threadIdx.x; w < words; w += kThreads) most = Most()(most, row[w]);
    // All threads have read the target's logit when this returns.
    most = over_block(most, Most());
    for (long w = threadIdx.x; w < words; w += kThreads) {
        row[w] = expf(row[w] - most);
        sum += row[w];
    }
    sum = over_block(sum, Sum());
    for (long w = threadIdx.x; w < words; w += kThreads)
        row[w] = scale * (row[w] / sum - (w == target ? 1 : 0));
    if (threadIdx.x == 0) losses[blockIdx.x] = logf(sum) - (at_target - most);
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

// The shape of a launch that sums columns.
dim3 column_blocks(long width) { return dim3(static_cast<unsigned>((width + kWarp - 1) / kWarp)); }
dim3 column_threads() { return dim3(kWarp, kThreads / kWarp); }
unsigned block_each(long rows) { return static_cast<unsigned>(rows); }

}  // namespace

cudaError_t launch_add_rows(float* out, const float* in, long rows, long width) {
    add_rows<<<column_blocks(width), column_threads()>>>(out, in, rows, width);
    return cudaGetLastError();
}

cudaError_t launch_layer_norm(const LayerNorm& norm, float* out) {
    layer_norm<<<block_each(norm.rows), kThreads>>>(norm, out);
    return cudaGetLastError();
}

cudaError_t launch_layer_norm_backward(const LayerNorm& norm, const float* d_out, float* d_in,
                                       float* d_weight, float* d_bias) {
    layer_norm_rows<<<block_each(norm.rows), kThreads>>>(norm, d_out, d_in);
    layer_norm_columns<<<column_blocks(norm.width), column_threads()>>>(norm, d_out, d_weight,
                                                                        d_bias);
    return cudaGetLastError();
}

cudaError_t launch_softmax(float* scores, long rows, long length) {
    softmax<<<block_each(rows), kThreads>>>(scores, length);
    return cudaGetLastError();
}

cudaError_t launch_softmax_backward(float* d, const float* shares, long rows, long length,
                                    float scale) {
    softmax_backward<<<block_each(rows), kThreads>>>(d, shares, length, scale);
    return cudaGetLastError();
}

cudaError_t launch_gelu(float* out, const float* in, long count) {
    gelu<<<blocks_for(count), kThreads>>>(out, in, count);
    return cudaGetLastError();
}

cudaError_t launch_gelu_backward(float* d_in, const float* in, const float* d_out, long count) {
    gelu_backward<<<blocks_for(count), kThreads>>>(d_in, in, d_out, count);
    return cudaGetLastError();
}

cudaError_t launch_bias(float* out, const float* bias, long rows, long width, bool add) {
    bias_rows<<<blocks_for(rows * width), kThreads>>>(out, bias, rows * width, width, add);
    return cudaGetLastError();
}

cudaError_t launch_embed(float* out, const int* tokens, const float* of_token,
                         const float* of_position, long rows, long length, long width) {
    embed<<<blocks_for(rows * width), kThreads>>>(out, tokens, of_token, of_position, rows * width,
                                                  length, width);
    return cudaGetLastError();
}

cudaError_t launch_embed_backward(float* d_of_token, float* d_of_position, const int* tokens,
                                  const float* d_out, long rows, long length, long width,
                                  long words) {
    embed_words<<<block_each(words), kThreads>>>(d_of_token, tokens, d_out, rows, width);
    embed_positions<<<blocks_for(length * width), kThreads>>>(d_of_position, d_out, rows, length,
                                                              width);
    return cudaGetLastError();
}

cudaError_t launch_cross_entropy(float* logits, float* losses, const int* targets, long rows,
                                 long words, float scale) {
    cross_entropy<<<block_each(rows), kThreads>>>(logits, losses, targets, words, scale);
    return cudaGetLastError();
}

cudaError_t launch_adam(float* values, float* first, float* second, const float* gradient,
                        long count, const AdamStep& step) {
    adam<<<blocks_for(count), kThreads>>>(values, first, second, gradient, count, step);
    return cudaGetLastError();
}

}  // namespace example::gpt
