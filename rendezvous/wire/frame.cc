// Writes frames, and cuts a byte stream into frames.
#include "rendezvous/wire/frame.h"

#include <algorithm>

namespace ddprun::rendezvous {
namespace {

constexpr std::size_t kLengthSize = 4;

std::uint32_t read_length(std::string_view bytes) {
    std::uint32_t length = 0;
    for (std::size_t i = 0; i < kLengthSize; ++i)
        length = length << 8 | static_cast<unsigned char>(bytes[i]);
    return length;
}

// A stranger's bytes for a sentence: printable ones as they are, the rest as dots.
std::string printable(std::string_view bytes) {
    std::string text(bytes.substr(0, 16));
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '.');
    return text;
}

}  // namespace

std::string frame(std::string_view body, std::string_view seal) {
    const std::size_t size = body.size() + seal.size();
    DDPRUN_CHECK(size <= UINT32_MAX, "a frame has at most 4 GiB");
    std::string bytes;
    bytes.reserve(kLengthSize + size);
    for (int shift = 24; shift >= 0; shift -= 8)
        bytes.push_back(static_cast<char>(size >> shift & 0xff));
    return bytes.append(body).append(seal);
}

// Compares as many bytes as have come, so a stranger is recognized at its first byte.
Result<> FrameReader::check_preface() {
    const std::size_t size = std::min(rest().size(), kPreface.size());
    if (rest().substr(0, size) != kPreface.substr(0, size))
        return Error(ErrorCode::malformed, "does not speak the agent link (its first bytes: \"" +
                                               printable(rest()) + "\")");
    if (size == kPreface.size()) {
        preface_seen_ = true;
        take(size);
    }
    return {};
}

void FrameReader::take(std::size_t size) {
    taken_ += size;
    // Moving the rest to the front costs time for each byte of it. So it is done only if less is
    // left than was taken.
    if (taken_ >= buffer_.size() - taken_) {
        buffer_.erase(0, taken_);
        taken_ = 0;
    }
}

Result<std::optional<std::string>> FrameReader::next() {
    if (!broken_ && !preface_seen_)
        if (auto checked = check_preface(); !checked) broken_ = checked.error();
    // After an error the place in the stream is unknown.
    if (broken_) return *broken_;
    if (!preface_seen_ || rest().size() < kLengthSize) return std::optional<std::string>();
    const std::size_t length = read_length(rest());
    // Checked before the body has come, so a wrong length costs no memory.
    if (length > limit_) {
        broken_.emplace(ErrorCode::malformed, "a frame of " + std::to_string(length) +
                                                  " bytes (limit " + std::to_string(limit_) + ")");
        return *broken_;
    }
    if (rest().size() < kLengthSize + length) return std::optional<std::string>();
    std::optional<std::string> body(std::in_place, rest().substr(kLengthSize, length));
    take(kLengthSize + length);
    return body;
}

}  // namespace ddprun::rendezvous
