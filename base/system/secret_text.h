// A secret in memory of its own. The kernel leaves this memory out of core files, and a process
// that is forked from us (the keeper, which outlives ddprun and needs no secret) finds zeros there.
// It is zeroed before it is given back.
//
// Each text takes a page, so this is for the few secrets of a job. What is made from a secret and
// dies with a connection does not need it. Conversions from and to plain text are the caller's
// care.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace ddprun {

class SecretText {
  public:
    SecretText() = default;
    // Implicit: whoever has a text may call it a secret.
    SecretText(std::string_view text);
    SecretText(const char* text) : SecretText(std::string_view(text)) {}
    SecretText(const std::string& text) : SecretText(std::string_view(text)) {}
    SecretText(const SecretText& other) : SecretText(std::string_view(other)) {}
    SecretText(SecretText&& other) noexcept
        : bytes_(std::exchange(other.bytes_, nullptr)), size_(std::exchange(other.size_, 0)) {}
    SecretText& operator=(SecretText other) noexcept {
        std::swap(bytes_, other.bytes_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~SecretText();

    // Moves a secret out of a plain text, which is zeroed: for what a library returns.
    static SecretText out_of(std::string&& text);

    operator std::string_view() const { return {bytes_, size_}; }
    bool empty() const { return size_ == 0; }
    std::size_t size() const { return size_; }
    const char* data() const { return bytes_; }

    // Not in constant time: for what we have made ourselves.
    friend bool operator==(const SecretText& a, const SecretText& b) {
        return std::string_view(a) == std::string_view(b);
    }

  private:
    char* bytes_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace ddprun
