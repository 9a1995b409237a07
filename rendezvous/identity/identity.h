// Who may speak on the agent link. Both sides prove that they have one secret, which only the job's
// user has, without ever sending it. This file has only the arithmetic. secret.h finds the secret;
// gate.h (leader) and node_handshake.h (node) exchange the messages.
//
//   node                              leader
//     ── Hello, nonce ─────────────────▶
//     ◀──────── Challenge, nonce, where the secret is to be had ──
//     ── Proof(node) ──────────────────▶  checks it
//     ◀──────────────── Proof(leader) ──
//     ═══ from here on every frame carries a seal ═══
//
// The node proves first. So a stranger who calls learns nothing with which he could test guesses of
// the secret.
//
// A proof is an HMAC-SHA-256 over the scheme, the side that gives it, and the whole transcript:
// both nonces, both identities, the run. So it is worth nothing on another connection, for another
// incarnation, or sent back to its maker.
//
// The seal of a frame is such a MAC, cut to 16 bytes, over the frame and its number. Its key comes
// from the same transcript; each direction has its own. Somebody between the two can read frames,
// but cannot alter, repeat, reorder or add any.
//
// Pure: the caller provides the nonces. A value of a wrong size gives false, never a crash.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "proto/ids.h"
#include "rendezvous/model/model.h"

namespace ddprun::rendezvous {

inline constexpr int kIdentityScheme = 1;  // both sides must name the same
// Sizes in bytes.
inline constexpr std::size_t kNonceSize = 32;
inline constexpr std::size_t kProofSize = 32;
inline constexpr std::size_t kSealSize = 16;

enum class Side { node, leader };

// What both sides have seen of one handshake.
struct Transcript {
    std::string run_id;
    int requeue = 0;
    NodeId node;
    NodeId leader;
    std::string node_nonce;
    std::string leader_nonce;
};

// The proof that `side` gives; kProofSize bytes. `secret` must not be empty.
std::string prove(std::string_view secret, Side side, const Transcript& transcript);

// Whether it is the proof that `side` gives. Takes constant time, so that a caller learns nothing
// from how long the answer takes.
bool is_proof(std::string_view proof, std::string_view secret, Side side,
              const Transcript& transcript);

// Seals of one direction of one connection. Each frame is sealed and opened once, in order. The
// keeper's Gone is the exception: it is prepared before anybody knows how many frames will precede
// it. It has the seal of the last word, which is accepted at any place.
class Seal {
  public:
    Seal(std::string_view secret, Side from, const Transcript& transcript);

    std::string next(std::string_view body);             // the seal of the next frame
    std::string last_word(std::string_view body) const;  // does not count as a frame

    // A key of kProofSize bytes for another use of this handshake's secret, which follows from the
    // key of this seal and says nothing about it.
    std::string key_for(std::string_view use) const;

    // Whether `sealed` ends with the right seal, which is then cut off. The count grows only if so.
    bool open(std::string_view& sealed);

  private:
    std::string at(std::uint64_t number, std::string_view body) const;

    std::string key_;
    std::uint64_t number_ = 0;
};

}  // namespace ddprun::rendezvous
