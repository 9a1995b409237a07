// The text on which `gpt` trains, as samples of characters. A character is a byte.
//
// The text is cut into windows of `context` characters and the one after them. Each tenth window is
// for validation, the others are for training. The vocabulary is the set of the text's characters,
// in the order of their numbers; a token is a place in it.
//
// Errors: not_found; usage, for a text that is too short or has a character that the vocabulary
// lacks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace example::gpt {

// The bytes of a file. An empty path: the licenses in /usr/share/common-licenses, which each Debian
// has: 0.2 MB of English.
ddprun::Result<std::string> load_text(const std::string& path);

// The characters of a text, each once.
std::string vocabulary_of(const std::string& text);

// Tokens of some windows: rows × length, and for each the one that follows it.
struct Batch {
    std::vector<int> tokens, targets;
    int rows = 0, length = 0;

    std::size_t positions() const { return tokens.size(); }
};

class Text {
  public:
    static ddprun::Result<Text> make(const std::string& text, const std::string& vocabulary,
                                     int context);

    const std::string& vocabulary() const { return vocabulary_; }
    std::span<const std::uint8_t> tokens() const { return tokens_; }  // the whole text
    std::int64_t training_windows() const { return windows_ - validation_windows(); }
    std::int64_t validation_windows() const { return windows_ / 10; }

    // The windows with these numbers, from 0.
    Batch training(std::span<const std::int64_t> windows) const;
    Batch validation(std::span<const std::int64_t> windows) const;

  private:
    Batch batch(std::span<const std::int64_t> windows) const;

    std::string vocabulary_;
    std::vector<std::uint8_t> tokens_;
    int context_ = 0;
    std::int64_t windows_ = 0;
};

}  // namespace example::gpt
