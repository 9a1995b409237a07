// The memory of a network's activations and of their derivatives. M: positions of the batch, C:
// width. T: the type of what is multiplied (kernels.h). All blocks grow with the largest batch and
// stay.
#pragma once

#include "examples/gpt/gpt_shape.h"
#include "examples/gpt/kernels.h"
#include "examples/gpt/memory_block.h"
#include "examples/gpt/word_rows.h"

namespace example::gpt {

// What forward() of a layer keeps for backward().
template <class T>
struct LayerMemory {
    Floats in;                              // M × C; the residual stream before the layer
    Floats mean1, rstd1;                    // M
    MemoryBlock<T> norm1;                   // M × C
    MemoryBlock<T> qkv, shares, attention;  // M × 3C; rows × heads × length²; M × C
    Floats middle;                          // M × C; the residual stream after attention
    Floats mean2, rstd2;                    // M
    MemoryBlock<T> norm2;                   // M × C
    MemoryBlock<T> up, gelu;                // M × 4C
};

template <class T>
struct NetworkMemory {
    std::vector<LayerMemory<T>> layers;
    Floats out, mean, rstd;  // residual stream at the end, and of its norm
    MemoryBlock<T> norm;
    MemoryBlock<T> logits;  // after forward(): their derivatives
    Floats losses;
    // Derivatives of the residual stream; the same as T, where T is not float; of something M × C,
    // of something M × 4C, of the scores.
    Floats d;
    MemoryBlock<T> d_rounded, d_narrow, d_wide, scores;

    // For a batch of `rows` sequences. `logits_row`: from one row of logits to the next.
    ddprun::Result<void> make_room(ddprun::trainer::Memory kind, const GptShape& shape, long rows,
                                   long length, long logits_row) {
        const long positions = rows * length, stream = positions * shape.width;
        const long all_scores = rows * shape.heads * length * length;
        ddprun::Result<void> done;
        auto room = [&](long count, auto&... blocks) {
            for (const auto& one : {blocks.resize(kind, count)...})
                if (done && !one) done = one;
        };
        room(positions, mean, rstd, losses);
        room(stream, out, norm, d, d_rounded, d_narrow);
        room(4 * stream, d_wide);
        room(all_scores, scores);
        room(positions * logits_row, logits);
        layers.resize(static_cast<std::size_t>(shape.layers));
        for (auto& m : layers) {
            room(positions, m.mean1, m.rstd1, m.mean2, m.rstd2);
            room(stream, m.in, m.norm1, m.attention, m.middle, m.norm2);
            room(3 * stream, m.qkv);
            room(all_scores, m.shares);
            room(4 * stream, m.up, m.gelu);
        }
        return done;
    }
};

// The rows of a batch by their words, in the kernels' memory.
class WordRowsMemory {
  public:
    ddprun::Result<void> fill(ddprun::trainer::Memory kind, std::span<const int> tokens,
                              int vocabulary) {
        const RowsByWord rows = rows_by_word(tokens, vocabulary);
        count_ = static_cast<long>(rows.words.size());
        for (auto [to, from] : {std::pair(&words_, &rows.words), std::pair(&begins_, &rows.begins),
                                std::pair(&rows_, &rows.rows)})
            if (auto done = to->fill(kind, *from); !done) return done;
        return {};
    }
    WordRows view() const { return {count_, words_.data(), begins_.data(), rows_.data()}; }

  private:
    long count_ = 0;
    Ints words_, begins_, rows_;
};

}  // namespace example::gpt
