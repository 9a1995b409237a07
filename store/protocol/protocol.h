// The wire format of PyTorch's TCPStore (c10d), in all its dialects from torch 1.13 on: bytes to
// requests, requests and replies to bytes. It knows nothing about existing keys, connections or
// time.
//
// Pure, no locks. A Decoder belongs to one connection. All integers are little endian. A "text" is
// a u64 length and that many bytes. There is no frame length and no version field: the meaning of
// the first byte depends on the dialect, which the Decoder finds out by itself (see Dialect).
//
// Possible errors: always malformed. The connection must be closed then, because nothing after a
// wrong byte can be understood. Source: PyTorch's torch/csrc/distributed/c10d/TCPStore*.cpp; torch
// 1.13 was tried with Debian's package.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "proto/ids.h"
#include "store/protocol/limits.h"
#include "store/protocol/operation.h"

namespace ddprun::store {

// One accepted connection. The server numbers connections from 1 on and never reuses a number.
using ConnectionId = Strong<struct StoreConnectionTag, std::uint64_t>;

// The values of one-byte answers. The same number means different things to CHECK and to WAIT.
enum class Status : std::uint8_t { ready = 0, not_ready = 1, stop_waiting = 0, wait_canceled = 1 };
inline constexpr std::uint8_t kWatchRegistered = 3;

// A request of any dialect. The operation determines which fields are used: one key or many; no
// value, one, two (compare_set: expected, desired) or one for each key (multi_set); `number` is
// ADD's delta, BARRIER's world size or PING's nonce.
struct Request {
    Operation operation = Operation::validate;
    std::vector<std::string> keys;
    std::vector<std::string> values;
    std::int64_t number = 0;

    bool operator==(const Request&) const = default;
};

// Decodes the bytes of one connection, in whatever pieces they arrive. It keeps its place inside a
// request, so no byte is looked at twice. A request that is half sent costs only the memory of what
// has arrived.
class Decoder {
  public:
    // With legacy = torch_1_13 or torch_2_1 nothing is guessed about old clients. The bytes of an
    // incomplete request are counted into `memory`. `limits` and `memory` must outlive the Decoder;
    // they are references, because there may be thousands of Decoders.
    explicit Decoder(const Limits& limits, Dialect legacy = Dialect::legacy,
                     Memory* memory = nullptr)
        : limits_(limits), memory_(memory), legacy_(legacy) {}
    explicit Decoder(Limits&&, Dialect = Dialect::legacy, Memory* = nullptr) = delete;
    ~Decoder() { forget(); }
    Decoder(const Decoder&) = delete;
    Decoder& operator=(const Decoder&) = delete;

    // Takes bytes off the front until a request is complete, and tells whether one is. The request
    // stands in request() until the next call; the caller may move from it. `burst` tells old
    // dialects apart: it is the size of the last read if the peer had sent no more than that, else
    // 0. Do not use the Decoder after an error.
    Result<bool> take(std::string_view& bytes, std::size_t burst);
    Request& request() { return request_; }

    // Decodes all of `bytes` and appends the complete requests to `out`. On an error `out` has the
    // requests before it, and these count.
    Result<> feed(std::string_view bytes, bool burst_ends, std::vector<Request>& out);

    Dialect dialect() const { return dialect_; }
    // Whether a request has begun and is not complete; and how far it is, for the log: "SET, 12 of
    // 5000 bytes of its value".
    bool inside_request() const { return stage_ != Stage::code; }
    std::string progress() const;
    // Drops an incomplete request. Do not use the Decoder afterwards.
    void forget();

  private:
    enum class Stage : std::uint8_t { code, number, text };  // what the next byte belongs to

    Result<> begin(std::uint8_t code);
    Result<Operation> operation_of(std::uint8_t code);
    Result<> take_number(std::string_view& bytes);
    Result<> take_text(std::string_view& bytes);
    Result<> on_number(std::uint64_t number);
    Result<> on_greeting(std::uint32_t magic);
    Result<> begin_text(std::uint64_t length);
    void next_field();
    Result<> make_room();
    void judge_burst(std::size_t burst_size);
    void recycle();
    void expect(char field);

    const Limits& limits_;
    Memory* const memory_;
    std::uint64_t counted_ = 0;  // bytes of this request that are counted into memory_
    Dialect legacy_;
    Dialect dialect_ = Dialect::unknown;
    Stage stage_ = Stage::code;
    std::uint8_t code_ = 0;  // of the current request, as it was sent
    bool complete_ = false;
    char field_ = 0;                // the current field (dialects.h)
    bool pairs_ = false;            // the counted list has keys and values in turn
    std::uint8_t number_have_ = 0;  // bytes of number_ that have come
    std::uint8_t number_want_ = 0;
    std::array<unsigned char, 8> number_{};
    Request request_;               // in progress or complete
    std::string_view fields_;       // fields of the request that are still to come (dialects.h)
    std::uint64_t texts_left_ = 0;  // of a counted list
    std::string* text_ = nullptr;   // the current text, inside request_
    std::uint64_t text_length_ = 0;
    std::uint64_t room_ = 0;           // bytes allocated for the current text
    std::uint64_t request_bytes_ = 0;  // keys and values of this request so far
};

// The bytes of a request in a dialect. The dialect must know the operation (else a programmer's
// mistake).
std::string encode(const Request& request, Dialect dialect = Dialect::torch_2_2);

// A stored value that can be sent to any number of connections without a copy.
using SharedValue = std::shared_ptr<const std::string>;

// A piece of output for one connection: `bytes`, then the bytes of `value` if there is one. Pieces
// for the same connection are sent in the order in which they were made.
struct Reply {
    ConnectionId to;
    std::string bytes;
    SharedValue value;

    std::size_t size() const { return bytes.size() + (value ? value->size() : 0); }
    std::string flat() const { return value ? bytes + *value : bytes; }
};

// Replies by their type in the table of Operation.
Reply status_reply(ConnectionId to, Status status);
Reply number_reply(ConnectionId to, std::int64_t number);
Reply nonce_reply(ConnectionId to, std::int64_t nonce);
// A text; null stands for the empty one. Values up to a few KiB are copied, larger ones are shared.
Reply value_reply(ConnectionId to, const SharedValue& value);

// The little-endian building blocks.
void put_u32(std::string& out, std::uint32_t number);
void put_u64(std::string& out, std::uint64_t number);
void put_text(std::string& out, std::string_view text);
std::uint64_t get_little_endian(const unsigned char* bytes, std::size_t count);

}  // namespace ddprun::store
