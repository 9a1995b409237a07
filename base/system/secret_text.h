// A secret in memory of its own. The kernel leaves this memory out of core files, and a process
// that is forked from us (the keeper, which outlives ddprun and needs no secret) finds zeros there.
// It is zeroed before it is given back.
//
// Each text takes a page, so this is for the few secrets of a job. Copies share the page, since a
// leader that admits ten thousand nodes copies its secret for each; the last of them gives it back.
// What is made from a secret and dies with a connection does not need it. Conversions from and to
// plain text are the caller's care. Copies may be used in different threads.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace ddprun {

class SecretText {
  public:
    SecretText() = default;
    // Implicit: whoever has a text may call it a secret.
    SecretText(std::string_view text);
    SecretText(const char* text) : SecretText(std::string_view(text)) {}
    SecretText(const std::string& text) : SecretText(std::string_view(text)) {}

    // Moves a secret out of a plain text, which is zeroed: for what a library returns.
    static SecretText out_of(std::string&& text);

    operator std::string_view() const { return {data(), size()}; }
    bool empty() const { return size() == 0; }
    std::size_t size() const { return page_ ? page_->size : 0; }
    const char* data() const { return page_ ? page_->bytes : nullptr; }

    // Not in constant time: for what we have made ourselves.
    friend bool operator==(const SecretText& a, const SecretText& b) {
        return std::string_view(a) == std::string_view(b);
    }

  private:
    // Owns the memory.
    struct Page {
        explicit Page(std::string_view text);
        ~Page();
        Page(const Page&) = delete;
        Page& operator=(const Page&) = delete;
        char* bytes;
        const std::size_t size;
    };
    std::shared_ptr<const Page> page_;  // null: the text is empty
};

}  // namespace ddprun
