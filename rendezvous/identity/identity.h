// Who may speak on the agent link: one secret that only the job's user has, proved by both sides
// and never sent. The arithmetic alone; where the secret comes from is secret.h's, who asks whom is
// gate.h's (the leader) and node_handshake.h's (the node).
//
//   node                              leader
//     ── Hello, nonce ─────────────────▶
//     ◀──────── Challenge, nonce, where the secret is to be had ──
//     ── Proof(node) ──────────────────▶  checks it: a stranger learns nothing that he could test
//     ◀──────────────── Proof(leader) ──  passwords with
//     ═══ from here on every frame carries a seal ═══
//
// A proof is HMAC-SHA-256 over the scheme, the side that gives it, and the whole transcript: both
// nonces, both identities, the run. So it is worth nothing on another connection, for another
// incarnation, or thrown back at its maker. The seal of a frame is such a MAC, cut to 16 bytes,
// with keys made from the same transcript, one for each direction, and the frame's number: who sits
// between the two can read, but not alter, repeat, reorder or add.
//
// Pure: nonces are given. Values of a wrong size are answered with false, never with a crash.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "proto/ids.h"
#include "rendezvous/model/model.h"

namespace ddprun::rendezvous {

inline constexpr int kIdentityScheme = 1;  // both must name the same
inline constexpr std::size_t kNonceSize = 32;
inline constexpr std::size_t kProofSize = 32;
inline constexpr std::size_t kSealSize = 16;

enum class Side { node, leader };

// What both sides have seen of a handshake.
struct Transcript {
    std::string run_id;
    int requeue = 0;
    NodeId node;
    NodeId leader;
    std::string node_nonce;
    std::string leader_nonce;
};

std::string prove(std::string_view secret, Side side, const Transcript& transcript);

// In constant time.
bool is_proof(std::string_view proof, std::string_view secret, Side side,
              const Transcript& transcript);

// One direction of one connection. Each frame is sealed and opened once, in order; but for the
// keeper's Gone, which is prepared before it is known how many frames will come before it: it bears
// the seal of the last word, and is opened at any place.
class Seal {
  public:
    Seal(std::string_view secret, Side from, const Transcript& transcript);

    std::string next(std::string_view body);             // its seal
    std::string last_word(std::string_view body) const;  // changes no count

    // Whether `sealed` ends with the right seal, which is cut off then. Takes a number only if so.
    bool open(std::string_view& sealed);

  private:
    std::string at(std::uint64_t number, std::string_view body) const;

    std::string key_;
    std::uint64_t number_ = 0;
};

}  // namespace ddprun::rendezvous
