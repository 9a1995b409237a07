// The embedding of words and positions, and its gradients.
#include "examples/gpt/embed_kernels.h"

#include "examples/gpt/kernel_parts.cuh"

namespace example::gpt {
namespace {

template <int N>
__global__ void embed(float* out, const int* tokens, const float* of_token,
                      const float* of_position, long rows, long length, long width) {
    const long row = row_of_warp();
    if (row >= rows) return;
    const float* token = of_token + tokens[row] * width;
    const float* position = of_position + row % length * width;
    each_pack<N>(width, [&](long c) {
        float x[N], y[N];
        load(x, token + c);
        load(y, position + c);
        for (int i = 0; i < N; ++i) x[i] += y[i];
        store(out + row * width + c, x);
    });
}

// Some columns of one word: its rows are added in their order. Several are read at a time, since a
// frequent word has many.
__global__ void embed_words(float* __restrict__ d_of_token, WordRows words,
                            const float* __restrict__ d_out, long width) {
    const long column = static_cast<long>(blockIdx.y) * kThreads + threadIdx.x;
    if (column >= width) return;
    const int begin = words.begins[blockIdx.x], end = words.begins[blockIdx.x + 1];
    float sum = 0;
#pragma unroll 8
    for (int i = begin; i < end; ++i) sum += d_out[words.rows[i] * width + column];
    d_of_token[words.words[blockIdx.x] * width + column] += sum;
}

__global__ void embed_positions(float* d_of_position, const float* d_out, long rows, long length,
                                long width) {
    const long i = static_cast<long>(blockIdx.x) * kThreads + threadIdx.x;
    if (i >= length * width) return;
    float sum = 0;
    for (long at = i; at < rows * width; at += length * width) sum += d_out[at];
    d_of_position[i] += sum;
}

}  // namespace

cudaError_t launch_embed(float* out, const int* tokens, const float* of_token,
                         const float* of_position, long rows, long length, long width) {
    return launch_packed(width, [=](auto pack) {
        embed<decltype(pack)::value><<<row_blocks(rows), kThreads>>>(
            out, tokens, of_token, of_position, rows, length, width);
    });
}

cudaError_t launch_embed_backward(float* d_of_token, float* d_of_position, const WordRows& words,
                                  const float* d_out, long rows, long length, long width) {
    const dim3 blocks(static_cast<unsigned>(words.count), blocks_for(width));
    embed_words<<<blocks, kThreads>>>(d_of_token, words, d_out, width);
    embed_positions<<<blocks_for(length * width), kThreads>>>(d_of_position, d_out, rows, length,
                                                              width);
    return cudaGetLastError();
}

}  // namespace example::gpt
