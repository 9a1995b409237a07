// The messages of the handshake ↔ bytes, and what may come at each of its steps. Beneath the
// messages of wire.h: the machines never see these. Checked like those, pure too.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "rendezvous/wire/wire.h"

namespace ddprun::rendezvous {

// A node's first message: a Hello or an Inquire. A Gone may be one too, and has neither nonce nor
// scheme.
struct Opening {
    ToLeader message;
    std::string nonce;
    int scheme = 0;
};

struct Challenge {
    int scheme = 0;
    NodeId leader;
    std::string nonce;
    std::string credential;
    std::string file;  // letters, digits, "-", "_" and "." inside only: never a path
    bool operator==(const Challenge&) const = default;
};

struct Proof {
    std::string mac;
    bool operator==(const Proof&) const = default;
};

// `opening` is a Hello or an Inquire.
std::string encode_opening(const ToLeader& opening, const std::string& nonce);
std::string encode(const Challenge& challenge);
std::string encode_node_proof(const Proof& proof);
std::string encode_leader_proof(const Proof& proof);

// Errors: malformed, with the field.
Result<Opening> decode_opening(std::string_view bytes);
Result<Proof> decode_node_proof(std::string_view bytes);

// What a leader says in a handshake; nothing for every other message, which is wire.h's.
using LeaderWord = std::variant<std::monostate, Challenge, Proof>;
Result<LeaderWord> decode_leader_word(std::string_view bytes);

}  // namespace ddprun::rendezvous
