// Sorts by counting.
#include "examples/gpt/word_rows.h"

#include <cstddef>

namespace example::gpt {

RowsByWord rows_by_word(std::span<const int> tokens, int vocabulary) {
    // How many rows a word has; then where its next row goes.
    std::vector<int> places(static_cast<std::size_t>(vocabulary), 0);
    for (int token : tokens) ++places[static_cast<std::size_t>(token)];
    RowsByWord all;
    int next = 0;
    for (int word = 0; word < vocabulary; ++word) {
        int& place = places[static_cast<std::size_t>(word)];
        const int count = place;
        place = next;
        if (count == 0) continue;
        all.words.push_back(word);
        all.begins.push_back(next);
        next += count;
    }
    all.begins.push_back(next);
    all.rows.resize(tokens.size());
    for (std::size_t row = 0; row < tokens.size(); ++row) {
        int& place = places[static_cast<std::size_t>(tokens[row])];
        all.rows[static_cast<std::size_t>(place++)] = static_cast<int>(row);
    }
    return all;
}

}  // namespace example::gpt
