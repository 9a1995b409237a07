// The rows of a batch by their words, so that a word's gradient is the sum of its rows only. Pure.
#pragma once

#include <span>
#include <vector>

namespace example::gpt {

// The memory of kernels.h's WordRows. Words ascend, and so do the rows of each.
struct RowsByWord {
    std::vector<int> words, begins, rows;
};

// The tokens are from 0 to vocabulary - 1. Takes time for each token and each word once.
RowsByWord rows_by_word(std::span<const int> tokens, int vocabulary);

}  // namespace example::gpt
