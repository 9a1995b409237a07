// Decodes what a store server sends: bytes, in whatever pieces they arrive, become the answers to
// the requests that a client has sent.
//
// Pure. A reader belongs to one connection. Tell it with expect() what was asked. Then let the
// socket write into room() and report with received() how much came, until complete(). A large
// value is received directly into its final place, without a copy. Memory for it is allocated as it
// arrives, so a wrong length costs nothing.
//
// Possible errors: malformed, when a length passes the limits. The connection is of no more use
// then.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "store/protocol/protocol.h"

namespace ddprun::store {

// The fields of an answer, in their order. GET gives one text, CHECK one number (its Status),
// QUEUE_POP one number and perhaps a text.
struct Answer {
    std::vector<std::int64_t> numbers;
    std::vector<std::string> texts;

    bool operator==(const Answer&) const = default;
};

// Whether the server answers this operation. SET, APPEND, MULTI_SET, QUEUE_PUSH and the greeting
// have no answer.
bool has_answer(Operation operation);

class AnswerReader {
  public:
    explicit AnswerReader(Limits limits = {}) : limits_(limits) {}

    // Adds the answer to `request` to what is still to come.
    void expect(const Request& request);

    // Where the next bytes go. There is always room. Then received() says how many bytes came.
    std::span<char> room();
    Result<> received(std::size_t count);

    // All that was expected has come.
    bool complete() const { return fields_at_ == fields_.size() && text_left_ == 0; }
    // Bytes have come that answer nothing.
    bool surplus() const { return complete() && begin_ != end_; }
    // What has come since the last take(). Also forgets what is still expected.
    Answer take();

  private:
    Result<> parse();
    Result<> begin_text(std::uint64_t length);
    void count_is(char field, std::int64_t count);

    Limits limits_;
    // Still to come: b u8, n u32, i i64, t text, P number and text if > 0, L counted texts.
    std::string fields_;
    std::size_t fields_at_ = 0;  // the next one of them
    Answer answer_;
    std::uint64_t text_left_ = 0;  // bytes of the last text that have not come yet
    bool direct_ = false;          // the last room() lies within that text
    std::size_t direct_at_ = 0;    // from this offset on
    std::array<char, 16 << 10> buffer_;
    std::size_t begin_ = 0;  // buffer_[begin_, end_) has come and is not decoded yet
    std::size_t end_ = 0;
};

}  // namespace ddprun::store
