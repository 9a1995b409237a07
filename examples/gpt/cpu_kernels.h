// The layers of a GPT on a CPU: what the model needs beside its own control flow. All numbers are
// float, all matrices are stored by rows.
//
// cpu_kernels.cc is compiled once for each kind of CPU (AVX-512, AVX2, any), and cpu_kernels()
// chooses when the program runs. The work is divided between OpenMP's threads. Each number is
// computed in one order, whatever their number: on one kind of CPU equal input gives equal bits.
//
// Backward functions add to the gradients of parameters, and set those of activations unless they
// say otherwise. Thread: any, one at a time for one output. No errors: the caller gives sizes that
// fit.
#pragma once

#include "examples/gpt/adam_step.h"

namespace example::gpt {

// A matrix that may be transposed or a part of another one: where it begins, and how far the next
// row and the next column are. One of the two is 1.
struct Matrix {
    const float* data = nullptr;
    long row = 0, column = 1;

    Matrix transposed() const { return {data, column, row}; }
};

// out (rows × columns) = scale × left (rows × depth) × right (depth × columns) + bias. With `add`
// the result is added to what is there.
struct Product {
    Matrix left, right;
    long rows = 0, columns = 0, depth = 0;
    float* out = nullptr;
    long out_row = 0;             // from one row of `out` to the next
    const float* bias = nullptr;  // one number for each column; null: none
    float scale = 1;
    bool add = false;
};

// A layer norm of `rows` vectors of `width` numbers. mean and rstd: one number a row, for backward.
struct LayerNorm {
    long rows = 0, width = 0;
    const float* in = nullptr;
    const float *weight = nullptr, *bias = nullptr;
    float *mean = nullptr, *rstd = nullptr;
};

// Causal attention of `batch` sequences of `length` positions, with `heads` heads of `size` numbers.
struct Attention {
    long batch = 0, length = 0, heads = 0, size = 0;
    const float* qkv = nullptr;  // batch × length × (query, key, value), each heads × size
    float* shares = nullptr;  // batch × heads × length × length: how much each position counts

    long width() const { return heads * size; }
};

struct CpuKernels {
    const char* name;  // "AVX-512", "AVX2" or "any CPU"

    void (*multiply)(const Product& product);
    // out (width) += the sum of the rows of `in`.
    void (*add_rows)(float* out, const float* in, long rows, long width);

    void (*layer_norm)(const LayerNorm& norm, float* out);
    // Adds to d_in, because a residual connection has the same input.
    void (*layer_norm_backward)(const LayerNorm& norm, const float* d_out, float* d_in,
                                float* d_weight, float* d_bias);

    // out: batch × length × width.
    void (*attention)(const Attention& attention, float* out);
    // `scratch` has the size of `shares`.
    void (*attention_backward)(const Attention& attention, const float* d_out, float* d_qkv,
                               float* scratch);

    // GELU in the form with tanh, which GPT-2 uses. d_in may be d_out.
    void (*gelu)(float* out, const float* in, long count);
    void (*gelu_backward)(float* d_in, const float* in, const float* d_out, long count);

    void (*add)(float* out, const float* a, const float* b, long count);  // out = a + b

    // Token and position: out (rows × width), rows = a multiple of `length`.
    void (*embed)(float* out, const int* tokens, const float* of_token, const float* of_position,
                  long rows, long length, long width);
    void (*embed_backward)(float* d_of_token, float* d_of_position, const int* tokens,
                           const float* d_out, long rows, long length, long width);

    // Replaces logits (rows × words) by their derivative of scale × the sum of the losses, and
    // writes the loss of each row.
    void (*cross_entropy)(float* logits, float* losses, const int* targets, long rows, long words,
                          float scale);

    void (*adam)(float* values, float* first, float* second, const float* gradient, long count,
                 const AdamStep& step);
};

// The kernels for the CPU on which the program runs. Any thread.
const CpuKernels& cpu_kernels();

// For tests: those of a kind of CPU. Null if the build or this CPU does not have it.
enum class CpuKind { any, avx2, avx512 };
const CpuKernels* cpu_kernels_of(CpuKind kind);

}  // namespace example::gpt
