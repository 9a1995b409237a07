// Requests and replies to bytes: the encoding half of protocol.h.
#include <algorithm>
#include <array>
#include <iterator>

#include "store/protocol/dialects.h"
#include "store/protocol/protocol.h"

namespace ddprun::store {
namespace {

// Values up to this size are copied into the reply. Copying them costs less than a buffer of their
// own in the gathered write.
constexpr std::size_t kCopyUpTo = 4096;

// The number of an operation in a dialect; its position in the dialect's table.
std::uint8_t code_of(Operation operation, Dialect dialect) {
    if (dialect == Dialect::torch_2_2) return static_cast<std::uint8_t>(operation);
    const Operation* begin =
        dialect == Dialect::torch_1_13 ? std::begin(kCodes113) : std::begin(kCodes21);
    const Operation* end =
        dialect == Dialect::torch_1_13 ? std::end(kCodes113) : std::end(kCodes21);
    const Operation* found = std::find(begin, end, operation);
    DDPRUN_CHECK(found != end, "the operation does not exist in this dialect");
    return static_cast<std::uint8_t>(found - begin);
}

// The wire format is little endian on every machine; on most of them this is one store.
template <typename Number>
void put_little_endian(std::string& out, Number number) {
    std::array<char, sizeof number> bytes{};
    for (char& byte : bytes) {
        byte = static_cast<char>(number);
        number >>= 8;
    }
    out.append(bytes.data(), bytes.size());
}

}  // namespace

const char* to_string(Operation operation) { return shape_of(operation).name; }

std::string encode(const Request& request, Dialect dialect) {
    std::string out(1, static_cast<char>(code_of(request.operation, dialect)));
    std::size_t key = 0;
    std::size_t value = 0;
    for (const char field : shape_of(request.operation).fields) {
        switch (field) {
            case 'm':
                put_u32(out, kGreetingMagic);
                break;
            case 'n':
                put_u32(out, static_cast<std::uint32_t>(request.number));
                break;
            case 'i':
                put_u64(out, static_cast<std::uint64_t>(request.number));
                break;
            case 'k':
                put_text(out, request.keys.at(key++));
                break;
            case 'v':
                put_text(out, request.values.at(value++));
                break;
            // K and P: a counted list.
            default:
                put_u64(out, request.keys.size());
                for (; key < request.keys.size(); ++key) {
                    put_text(out, request.keys[key]);
                    if (field == 'P') put_text(out, request.values.at(key));
                }
        }
    }
    return out;
}

Reply status_reply(ConnectionId to, Status status) {
    return {to, std::string(1, static_cast<char>(status)), nullptr};
}

Reply number_reply(ConnectionId to, std::int64_t number) {
    Reply reply{to, {}, nullptr};
    put_u64(reply.bytes, static_cast<std::uint64_t>(number));
    return reply;
}

Reply nonce_reply(ConnectionId to, std::int64_t nonce) {
    Reply reply{to, {}, nullptr};
    put_u32(reply.bytes, static_cast<std::uint32_t>(nonce));
    return reply;
}

Reply value_reply(ConnectionId to, const SharedValue& value) {
    Reply reply{to, {}, nullptr};
    if (!value || value->size() <= kCopyUpTo) {
        put_text(reply.bytes, value ? std::string_view(*value) : std::string_view());
    } else {
        // Only the length is copied. The value itself is sent from where the store keeps it.
        put_u64(reply.bytes, value->size());
        reply.value = value;
    }
    return reply;
}

void put_u32(std::string& out, std::uint32_t number) { put_little_endian(out, number); }

void put_u64(std::string& out, std::uint64_t number) { put_little_endian(out, number); }

void put_text(std::string& out, std::string_view text) {
    put_u64(out, text.size());
    out.append(text);
}

std::uint64_t get_little_endian(const unsigned char* bytes, std::size_t count) {
    std::uint64_t number = 0;
    for (std::size_t i = count; i-- > 0;) number = number << 8 | bytes[i];
    return number;
}

}  // namespace ddprun::store
