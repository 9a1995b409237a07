// Judges the first bytes of a connection.
#include "rendezvous/wire/first_bytes.h"

#include "rendezvous/wire/frame.h"

#include <boost/algorithm/hex.hpp>
#include "rendezvous/wire/wire.h"

namespace ddprun::rendezvous {
namespace {

constexpr unsigned char kLastC10dCode = 0x12;  // BARRIER, PyTorch's newest request
constexpr std::size_t kLength = 4;             // size of the length before a frame's body
constexpr std::size_t kQuoted = 16;            // bytes of a stranger that are shown

// Printable bytes as they are, others as \x…: a stranger must not send control characters to a
// terminal.
std::string quoted(std::string_view bytes) {
    std::string text = "\"";
    for (const char c : bytes.substr(0, kQuoted)) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte >= 0x20 && byte < 0x7f && c != '"' && c != '\\')
            text += c;
        else
            text += "\\x" + boost::algorithm::hex_lower(std::string(1, c));
    }
    return text + '"';
}

// Only these two can come first at a rendezvous outside of jobs: they say which run is meant.
FirstBytes judge_first_message(std::string_view body) {
    auto message = decode_to_leader(body);
    if (!message) return Stranger{"says " + message.error().sentence()};
    if (auto* hello = std::get_if<Hello>(&*message)) return AgentLink{std::move(*hello)};
    if (auto* operate = std::get_if<Operate>(&*message)) return AgentLink{std::move(operate->as)};
    return Stranger{"does not begin with a Hello"};
}

FirstBytes judge_link(std::string_view bytes) {
    // The length of the first frame tells how many bytes to wait for.
    if (bytes.size() < kPreface.size() + kLength) return NeedsMore{kPreface.size() + kLength};
    std::size_t size = 0;
    for (const char c : bytes.substr(kPreface.size(), kLength))
        size = size << 8 | static_cast<unsigned char>(c);
    // Refused before it has come: the endpoint would otherwise wait for that many bytes.
    if (size > kFirstFrameLimit)
        return Stranger{"begins with a message of " + std::to_string(size) + " bytes (limit " +
                        std::to_string(kFirstFrameLimit) + ")"};
    const std::size_t whole = kPreface.size() + kLength + size;
    if (bytes.size() < whole) return NeedsMore{whole};
    return judge_first_message(bytes.substr(kPreface.size() + kLength, size));
}

}  // namespace

FirstBytes judge_first_bytes(std::string_view bytes) {
    if (bytes.empty()) return NeedsMore{1};
    if (static_cast<unsigned char>(bytes.front()) <= kLastC10dCode) return C10d{};
    // A part of the preface is enough to go on; judge_link() then asks for the rest.
    if (kPreface.substr(0, bytes.size()) == bytes.substr(0, kPreface.size()))
        return judge_link(bytes);
    return Stranger{"begins with " + quoted(bytes) + ", which is none of ours"};
}

}  // namespace ddprun::rendezvous
