// An error as a word in the store: "!", a letter for its code, and the sentence. Pure.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"

namespace ddprun::trainer {

inline std::string word_of(const Error& error) {
    return std::string("!") + static_cast<char>('a' + static_cast<int>(error.code())) +
           error.sentence();
}

// Empty if the word is no error.
inline std::optional<Error> failure_in(const std::string& word) {
    if (word.size() < 2 || word[0] != '!') return std::nullopt;
    return Error(static_cast<ErrorCode>(word[1] - 'a'), word.substr(2));
}

}  // namespace ddprun::trainer
