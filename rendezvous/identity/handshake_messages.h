// The messages of the handshake ↔ bytes, and which may come at each step. They lie beneath the
// messages of wire.h: the machines never see them. They are checked in the same way. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "rendezvous/wire/wire.h"

namespace ddprun::rendezvous {

// A caller's first message: a Hello, an Inquire or an Operate with nonce and scheme. A Gone may
// come first as well; it has neither.
struct Opening {
    ToLeader message;
    std::string nonce;
    int scheme = 0;
};

// The leader's demand for a proof, and where the secret can be found (secret.h).
struct Challenge {
    int scheme = 0;
    NodeId leader;
    std::string nonce;
    std::string credential;
    std::string file;  // a plain file name of letters, digits, "-", "_" and "."; never a path
    bool operator==(const Challenge&) const = default;
};

// That its sender has the secret.
struct Proof {
    std::string mac;  // kProofSize bytes
    bool operator==(const Proof&) const = default;
};

// `opening` is a Hello, an Inquire or an Operate.
std::string encode_opening(const ToLeader& opening, const std::string& nonce);
// These cannot fail: what is encoded is our own.
std::string encode(const Challenge& challenge);
std::string encode_node_proof(const Proof& proof);
std::string encode_leader_proof(const Proof& proof);

// Possible errors: malformed, with the name of the field.
Result<Opening> decode_opening(std::string_view bytes);
Result<Proof> decode_node_proof(std::string_view bytes);

// What a leader may say in a handshake; monostate for any other message, which wire.h decodes.
using LeaderWord = std::variant<std::monostate, Challenge, Proof>;
Result<LeaderWord> decode_leader_word(std::string_view bytes);

}  // namespace ddprun::rendezvous
