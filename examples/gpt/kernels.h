// The layers of a GPT as a table of functions: what the network needs beside its own control flow.
// There is a table for each kind of CPU (cpu_kernels.h) and two for GPUs (cuda_kernels.h). All
// matrices are stored by rows, and all pointers lie in one kind of memory.
//
// T is the type of what matrix products multiply: float, or Bfloat16 on GPUs. Sums, gradients of
// parameters, the residual stream and its derivatives are always float.
//
// Each number is computed in one order, whatever the number of threads: on one kind of processor
// equal input gives equal bits. Backward functions add to the gradients of parameters, and set
// those of activations unless they say otherwise.
//
// Thread: one. The caller gives sizes that fit; what a GPU reports, problem() tells later. The file
// includes nothing of C++, for cpu_kernels.cc and nvcc.
#pragma once

#include "examples/gpt/adam_step.h"

namespace example::gpt {

// The upper half of a float.
struct Bfloat16 {
    unsigned short bits;
};

// A matrix that may be transposed or a part of another one: where it begins, and how far the next
// row and the next column are. One of the two is 1.
template <class T>
struct BasicMatrix {
    const T* data = nullptr;
    long row = 0, column = 1;

    BasicMatrix transposed() const { return {data, column, row}; }
};
using Matrix = BasicMatrix<float>;

// out (rows × columns) = scale × left (rows × depth) × right (depth × columns) + bias. With `add`
// the result is added to what is there.
template <class T, class Out = T>
struct BasicProduct {
    BasicMatrix<T> left, right;
    long rows = 0, columns = 0, depth = 0;
    Out* out = nullptr;
    long out_row = 0;             // from one row of `out` to the next
    const float* bias = nullptr;  // one number for each column; null: none
    float scale = 1;
    bool add = false;
};
using Product = BasicProduct<float>;

// A layer norm of `rows` vectors of `width` numbers. mean and rstd: one number a row, for backward.
struct LayerNorm {
    long rows = 0, width = 0;
    const float* in = nullptr;
    const float *weight = nullptr, *bias = nullptr;
    float *mean = nullptr, *rstd = nullptr;
};

// Causal attention of `batch` sequences of `length` positions, with `heads` heads of `size`
// numbers.
template <class T>
struct BasicAttention {
    long batch = 0, length = 0, heads = 0, size = 0;
    const T* qkv = nullptr;  // batch × length × (query, key, value), each heads × size
    T* shares = nullptr;     // batch × heads × length × length: how much each position counts

    long width() const { return heads * size; }
};
using Attention = BasicAttention<float>;

// Logits (rows × words) and what the words should have been.
template <class T>
struct BasicLogits {
    long rows = 0, words = 0;
    T* logits = nullptr;
    long row = 0;  // from one row to the next; what lies behind the words becomes 0
    const int* targets = nullptr;
};
using Logits = BasicLogits<float>;

// The rows of a batch by their words (word_rows.h makes it). There are `count` different words. Of
// words[i] the rows are rows[begins[i]] … rows[begins[i + 1] - 1], in their order.
struct WordRows {
    long count = 0;
    const int *words = nullptr, *begins = nullptr, *rows = nullptr;
};

template <class T>
struct BasicKernels {
    const char* name;  // of the processor

    void (*multiply)(const BasicProduct<T>& product);
    void (*multiply_wide)(const BasicProduct<T, float>& product);
    // out (width) += the sum of the rows of `in`.
    void (*add_rows)(float* out, const T* in, long rows, long width);

    void (*layer_norm)(const LayerNorm& norm, T* out);
    // Adds to d_in, because a residual connection has the same input.
    void (*layer_norm_backward)(const LayerNorm& norm, const T* d_out, float* d_in, float* d_weight,
                                float* d_bias);

    // out: batch × length × width.
    void (*attention)(const BasicAttention<T>& attention, T* out);
    // `scratch` has the size of `shares`.
    void (*attention_backward)(const BasicAttention<T>& attention, const T* d_out, T* d_qkv,
                               T* scratch);

    // GELU in the form with tanh, which GPT-2 uses. d_in may be d_out.
    void (*gelu)(T* out, const T* in, long count);
    void (*gelu_backward)(T* d_in, const T* in, const T* d_out, long count);

    // Rounded to nearest.
    void (*narrow)(T* out, const float* in, long count);
    void (*copy)(float* out, const float* in, long count);
    void (*zero)(float* out, long count);

    // Token and position: out (rows × width), rows = a multiple of `length`.
    void (*embed)(float* out, const int* tokens, const float* of_token, const float* of_position,
                  long rows, long length, long width);
    void (*embed_backward)(float* d_of_token, float* d_of_position, const WordRows& words,
                           const float* d_out, long rows, long length, long width);

    // Replaces logits by their derivative of scale × the sum of the losses, and writes the loss of
    // each row.
    void (*cross_entropy)(const BasicLogits<T>& logits, float* losses, float scale);

    void (*adam)(float* values, float* first, float* second, const float* gradient, long count,
                 const AdamStep& step);

    // What has gone wrong since the last call, in words. Null: nothing. Always null on a CPU.
    const char* (*problem)();
};
using Kernels = BasicKernels<float>;

}  // namespace example::gpt
