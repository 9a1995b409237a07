// Causal attention of the CPU kernels. Only cpu_kernels.cc includes this file.
//
// A thread computes one head of one sequence. The products leave out blocks that the causal mask
// sets to 0. Within a block the shares of later positions are 0.
#pragma once

#include "examples/gpt/cpu_matmul.h"

namespace example::gpt {
namespace {

constexpr long kBlock = 36;  // positions; a multiple of kRows

// Where the parts of one head lie.
struct Head {
    Head(const Attention& a, long index)
        : row(3 * a.width()),
          first(index / a.heads * a.length * row + index % a.heads * a.size),
          shares(a.shares + index * a.length * a.length),
          out(index / a.heads * a.length * a.width() + index % a.heads * a.size) {}

    // Number `which` of query, key and value.
    long at(const Attention& a, int which) const { return first + which * a.width(); }

    long row, first;
    float* shares;
    long out;  // in batch × length × width
};

// Softmax of the scores up to the own position; 0 after it, up to `columns`.
void softmax_row(float* row, long position, long columns) {
    float most = row[0], sum = 0;
    for (long j = 1; j <= position; ++j) most = row[j] > most ? row[j] : most;
    for (long j = 0; j <= position; ++j) {
        row[j] = expf(row[j] - most);
        sum += row[j];
    }
    for (long j = 0; j <= position; ++j) row[j] /= sum;
    for (long j = position + 1; j < columns; ++j) row[j] = 0;
}

void attend(const Attention& a, const Head& h, float* out) {
    const Matrix query{a.qkv + h.at(a, 0), h.row}, key{a.qkv + h.at(a, 1), h.row},
        value{a.qkv + h.at(a, 2), h.row};
    const float scale = 1 / sqrtf(static_cast<float>(a.size));
    for (long i0 = 0; i0 < a.length; i0 += kBlock) {
        const long i1 = least(i0 + kBlock, a.length), rows = i1 - i0;
        float* shares = h.shares + i0 * a.length;
        multiply_all({{query.data + i0 * h.row, h.row},
                      key.transposed(),
                      rows,
                      i1,
                      a.size,
                      shares,
                      a.length,
                      nullptr,
                      scale,
                      false});
        for (long i = i0; i < i1; ++i) softmax_row(h.shares + i * a.length, i, i1);
        multiply_all({{shares, a.length},
                      value,
                      rows,
                      a.size,
                      i1,
                      out + h.out + i0 * a.width(),
                      a.width(),
                      nullptr,
                      1,
                      false});
    }
}

// Of the scores, from the shares and their derivatives in `d`: s × (d - Σ s d).
void softmax_row_backward(float* d, const float* shares, long columns, float scale) {
    float sum = 0;
    for (long j = 0; j < columns; ++j) sum += d[j] * shares[j];
    for (long j = 0; j < columns; ++j) d[j] = shares[j] * (d[j] - sum) * scale;
}

// `scores`: length × length, scratch.
void attend_backward(const Attention& a, const Head& h, const float* d_out, float* d_qkv,
                     float* scores) {
    const Matrix query{a.qkv + h.at(a, 0), h.row}, key{a.qkv + h.at(a, 1), h.row},
        value{a.qkv + h.at(a, 2), h.row}, d{d_out + h.out, a.width()};
    float *d_query = d_qkv + h.at(a, 0), *d_key = d_qkv + h.at(a, 1), *d_value = d_qkv + h.at(a, 2);
    const float scale = 1 / sqrtf(static_cast<float>(a.size));
    for (long i0 = 0; i0 < a.length; i0 += kBlock) {
        const long i1 = least(i0 + kBlock, a.length), rows = i1 - i0;
        multiply_all({{d.data + i0 * d.row, d.row},
                      value.transposed(),
                      rows,
                      i1,
                      a.size,
                      scores + i0 * a.length,
                      a.length,
                      nullptr,
                      1,
                      false});
        for (long i = i0; i < i1; ++i)
            softmax_row_backward(scores + i * a.length, h.shares + i * a.length, i1, scale);
        multiply_all({{scores + i0 * a.length, a.length},
                      key,
                      rows,
                      a.size,
                      i1,
                      d_query + i0 * h.row,
                      h.row,
                      nullptr,
                      1,
                      false});
    }
    // Positions from j0 on look at the keys and values of the block at j0.
    for (long j0 = 0; j0 < a.length; j0 += kBlock) {
        const long rows = least(kBlock, a.length - j0), from = j0 * a.length + j0;
        multiply_all({Matrix{scores + from, a.length}.transposed(),
                      {query.data + j0 * h.row, h.row},
                      rows,
                      a.size,
                      a.length - j0,
                      d_key + j0 * h.row,
                      h.row,
                      nullptr,
                      1,
                      false});
        multiply_all({Matrix{h.shares + from, a.length}.transposed(),
                      {d.data + j0 * d.row, d.row},
                      rows,
                      a.size,
                      a.length - j0,
                      d_value + j0 * h.row,
                      h.row,
                      nullptr,
                      1,
                      false});
    }
}

void attention(const Attention& a, float* out) {
#pragma omp parallel for
    for (long index = 0; index < a.batch * a.heads; ++index) attend(a, Head(a, index), out);
}

void attention_backward(const Attention& a, const float* d_out, float* d_qkv, float* scratch) {
#pragma omp parallel for
    for (long index = 0; index < a.batch * a.heads; ++index)
        attend_backward(a, Head(a, index), d_out, d_qkv, scratch + index * a.length * a.length);
}

}  // namespace
}  // namespace example::gpt
