// A stored text that counts its size into the store's memory for as long as anybody holds it: the
// tables, or a reply on its way to a slow reader. Pure.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "store/protocol/limits.h"

namespace ddprun::store {

// Must not outlive the Memory.
class CountedText {
  public:
    CountedText(std::string text, Memory& memory) : text_(std::move(text)), memory_(memory) {
        memory_.used += size();
    }
    ~CountedText() { memory_.used -= size(); }
    CountedText(const CountedText&) = delete;
    CountedText& operator=(const CountedText&) = delete;

    const std::string& text() const { return text_; }
    // `text` gets the old text's buffer in exchange, for reuse.
    void assign(std::string&& text) {
        memory_.used -= size();
        text_.swap(text);
        memory_.used += size();
    }
    void append(const std::string& more) {
        text_ += more;
        memory_.used += more.size();
    }

  private:
    std::uint64_t size() const { return sizeof(CountedText) + text_.size(); }

    std::string text_;
    Memory& memory_;
};

// A pointer to the text that keeps the whole CountedText alive, and so counted.
inline std::shared_ptr<const std::string> shared(const std::shared_ptr<CountedText>& value) {
    return {value, &value->text()};
}

// The same for a new text.
inline std::shared_ptr<const std::string> counted(std::string&& text, Memory& memory) {
    return shared(std::make_shared<CountedText>(std::move(text), memory));
}

}  // namespace ddprun::store
