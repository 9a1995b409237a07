// The wire format of PyTorch's TCPStore (c10d), all dialects from torch 1.13 to the newest: bytes
// to requests, requests and replies to bytes. It knows nothing of keys that exist, of connections
// or of time.
//
// Pure and without locks: a Decoder belongs to one connection and to whoever serves it. All
// integers are little endian, "text" is a u64 length and that many bytes. There is no frame length
// and no version field: what the first byte means depends on the dialect, which the Decoder finds
// out by itself (see Dialect). Errors are always ErrorCode::malformed and mean that this connection
// has to be closed, for nothing after a wrong byte can be understood. Source: the project's
// reference on the c10d store, sections 1 and 2; torch 1.13 was tried with Debian's package.
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
#include "rendezvous/store/limits.h"

namespace ddprun::store {

// One accepted connection, numbered by the server from 1 on and never used again.
using ConnectionId = Strong<struct StoreConnectionTag, std::uint64_t>;

inline constexpr std::uint32_t kGreetingMagic = 0x3C85F7CE;

// Which numbers stand for which operation. torch 2.2 and later say so with a greeting; the two
// older dialects agree in all but codes 7 and 8, and are told apart by how the bytes arrive: 1.13
// sends the code in a packet of its own and waits after the key of a code 8 (DELETE_KEY); 2.1 sends
// a request in one piece, and its code 8 (APPEND) goes on after the key.
enum class Dialect : std::uint8_t {
    unknown,     // nothing received
    legacy,      // 1.13 or 2.1, not decided; served alike
    torch_1_13,  // 1.13 and 2.0
    torch_2_1,   // 2.1
    torch_2_2,   // 2.2 and later
};

// In the order of the codes of torch 2.2 and later; watch_key exists in 1.13 and 2.0 only.
enum class Operation : std::uint8_t {
    validate,     // no reply
    set,          // no reply
    compare_set,  // -> text
    get,          // -> text
    add,          // -> i64
    check,        // -> u8 Status::ready or not_ready
    wait,         // -> u8 Status::stop_waiting, later
    num_keys,     // -> i64
    delete_key,   // -> i64, 0 or 1
    append,       // no reply
    multi_get,    // -> one text a key, no count
    multi_set,    // no reply
    cancel_wait,  // -> u8 Status::wait_canceled, always
    ping,         // -> u32, the nonce
    queue_push,   // no reply
    queue_pop,    // -> i64 length before; if > 0 also text
    queue_len,    // -> i64
    list_keys,    // -> i64 n, n texts
    barrier,      // -> u8 Status::stop_waiting, later
    watch_key,    // -> u8 kWatchRegistered, and a record at each change
};

const char* to_string(Operation operation);

enum class Status : std::uint8_t { ready = 0, not_ready = 1, stop_waiting = 0, wait_canceled = 1 };
inline constexpr std::uint8_t kWatchRegistered = 3;

// A request of any dialect. Which parts are used depends on the operation: one key or many; no
// value, one, or (compare_set) expected and desired, or (multi_set) one a key; number is ADD's
// delta, BARRIER's world size, PING's nonce.
struct Request {
    Operation operation = Operation::validate;
    std::vector<std::string> keys;
    std::vector<std::string> values;
    std::int64_t number = 0;

    bool operator==(const Request&) const = default;
};

// Bytes of one connection, in whatever pieces they come, to requests. Keeps its place within a
// request, so no byte is looked at twice, and a half-sent request costs only what has arrived of
// it.
class Decoder {
  public:
    // With legacy = torch_1_13 or torch_2_1 nothing is guessed about old clients. What arrives of a
    // request is counted into `memory` until the request is complete. Both outlive the Decoder:
    // there may be thousands.
    explicit Decoder(const Limits& limits, Dialect legacy = Dialect::legacy,
                     Memory* memory = nullptr)
        : limits_(limits), memory_(memory), legacy_(legacy) {}
    explicit Decoder(Limits&&, Dialect = Dialect::legacy, Memory* = nullptr) = delete;
    ~Decoder() { forget(); }
    Decoder(const Decoder&) = delete;
    Decoder& operator=(const Decoder&) = delete;

    // Takes bytes off the front until a request is complete; whether one is. It stands in request()
    // until the next call, for the caller to use up. `burst` is the size of what was read when the
    // peer had sent no more than that, else 0; it is only used to tell old dialects apart. After an
    // error the Decoder must not be used again.
    Result<bool> take(std::string_view& bytes, std::size_t burst);
    Request& request() { return request_; }

    // The same for all of them: appends the requests that `bytes` completes to
    // `out`; those before an error are there too and count.
    Result<> feed(std::string_view bytes, bool burst_ends, std::vector<Request>& out);

    Dialect dialect() const { return dialect_; }
    // Whether a request has begun and is not complete, and how far it is, for the log: "SET, 12 of
    // 5000 bytes of its value".
    bool inside_request() const { return stage_ != Stage::code; }
    std::string progress() const;
    // Gives up what has arrived of a request. The Decoder must not be used again.
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
    std::uint64_t counted_ = 0;  // into memory_
    Dialect legacy_;
    Dialect dialect_ = Dialect::unknown;
    Stage stage_ = Stage::code;
    std::uint8_t code_ = 0;  // of the request in progress, as sent
    bool complete_ = false;
    char field_ = 0;                // in progress
    bool pairs_ = false;            // its counted list is of key and value in turn
    std::uint8_t number_have_ = 0;  // bytes of number_
    std::uint8_t number_want_ = 0;
    std::array<unsigned char, 8> number_{};
    Request request_;               // in progress, or complete
    std::string_view fields_;       // of the request, still to come (see the table in protocol.cc)
    std::uint64_t texts_left_ = 0;  // of a counted list
    std::string* text_ = nullptr;   // into request_
    std::uint64_t text_length_ = 0;
    std::uint64_t room_ = 0;           // taken for it so far
    std::uint64_t request_bytes_ = 0;  // keys and values so far
};

// The bytes of a request in a dialect (torch_2_2 unless told). The operation must exist there: a
// programmer's matter.
std::string encode(const Request& request, Dialect dialect = Dialect::torch_2_2);

// A value that is stored, and is being sent to any number of connections, without copies.
using SharedValue = std::shared_ptr<const std::string>;

// A piece of output for one connection: `bytes`, then the value's bytes if there is one. Pieces for
// the same connection go out in the order in which they were made.
struct Reply {
    ConnectionId to;
    std::string bytes;
    SharedValue value;

    std::size_t size() const { return bytes.size() + (value ? value->size() : 0); }
    std::string flat() const { return value ? bytes + *value : bytes; }
};

Reply status_reply(ConnectionId to, Status status);
Reply number_reply(ConnectionId to, std::int64_t number);
Reply nonce_reply(ConnectionId to, std::int64_t nonce);
// A text; null stands for the empty one. Values up to a few KiB are copied, larger ones shared.
Reply value_reply(ConnectionId to, const SharedValue& value);

// The little-endian building blocks, for whoever composes or reads replies.
void put_u32(std::string& out, std::uint32_t number);
void put_u64(std::string& out, std::uint64_t number);
void put_text(std::string& out, std::string_view text);
std::uint64_t get_little_endian(const unsigned char* bytes, std::size_t count);

}  // namespace ddprun::store
