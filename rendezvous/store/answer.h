// The other direction of the wire format: bytes from a server, in whatever pieces they come, to the
// answers of the requests that a client has sent.
//
// Pure. A reader belongs to one connection; expect() what was asked, then give room() to the socket
// and say with received() how much it wrote there, until complete(). Large values are received
// where they stay, without a copy, and memory for them is taken as they arrive: a wrong length
// costs nothing. Errors: malformed, when a length passes the limits; the connection is of no more
// use then.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rendezvous/store/protocol.h"

namespace ddprun::store {

// What came back, in the order of the answer's fields: GET gives one text, CHECK one number (its
// Status), QUEUE_POP a number and perhaps a text.
struct Answer {
    std::vector<std::int64_t> numbers;
    std::vector<std::string> texts;

    bool operator==(const Answer&) const = default;
};

// Whether the server answers at all; from 19 operations four and the greeting have no reply.
bool has_answer(Operation operation);

class AnswerReader {
  public:
    explicit AnswerReader(Limits limits = {}) : limits_(limits) {}

    // Adds the answer of a request to what is still to come.
    void expect(const Request& request);

    // Where the next bytes go, and how many of them came. There is always room.
    std::span<char> room();
    Result<> received(std::size_t count);

    bool complete() const { return fields_at_ == fields_.size() && text_left_ == 0; }
    // Bytes that belong to nothing that was expected.
    bool surplus() const { return complete() && begin_ != end_; }
    // What has come since the last take().
    Answer take();

  private:
    Result<> parse();
    Result<> begin_text(std::uint64_t length);
    void count_is(char field, std::int64_t count);

    Limits limits_;
    std::string fields_;  // b u8, n u32, i i64, t text, P number and text if > 0, L counted texts
    std::size_t fields_at_ = 0;
    Answer answer_;
    std::uint64_t text_left_ = 0;  // of the last text, not received yet
    bool direct_ = false;          // room() was within that text
    std::size_t direct_at_ = 0;
    std::array<char, 16 << 10> buffer_;
    std::size_t begin_ = 0;  // of what is in buffer_ and not understood yet
    std::size_t end_ = 0;
};

}  // namespace ddprun::store
