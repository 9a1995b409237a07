// What goes into each proof and seal (identity.h).
#include "rendezvous/identity/identity.h"

#include <limits>

#include "base/error.h"
#include "rendezvous/identity/mac.h"

namespace ddprun::rendezvous {
namespace {

// The frame number of the last word; no count reaches it.
constexpr std::uint64_t kLastWord = std::numeric_limits<std::uint64_t>::max();

static_assert(kProofSize == kMacSize);

// `what` separates the uses of one secret: a proof can never serve as the key of a seal.
std::string mac(std::string_view secret, std::string_view what, Side side, const Transcript& t) {
    // With an empty key anybody could compute the MAC.
    DDPRUN_CHECK(!secret.empty(), "a proof needs a secret");
    return hmac_of_secret(
        secret, mac_field("ddprun agent link") + mac_number(kIdentityScheme) + mac_field(what) +
                    mac_field(side == Side::node ? "node" : "leader") + mac_field(t.run_id) +
                    mac_number(static_cast<std::uint64_t>(t.requeue)) + mac_field(t.node.name) +
                    mac_number(t.node.incarnation.value) + mac_field(t.leader.name) +
                    mac_number(t.leader.incarnation.value) + mac_field(t.node_nonce) +
                    mac_field(t.leader_nonce));
}

}  // namespace

std::string prove(std::string_view secret, Side side, const Transcript& transcript) {
    return mac(secret, "proof", side, transcript);
}

bool is_proof(std::string_view proof, std::string_view secret, Side side,
              const Transcript& transcript) {
    // A short nonce from the other side could make the transcript predictable.
    return transcript.node_nonce.size() == kNonceSize &&
           transcript.leader_nonce.size() == kNonceSize &&
           same_mac(proof, prove(secret, side, transcript));
}

Seal::Seal(std::string_view secret, Side from, const Transcript& transcript)
    : key_(mac(secret, "seal", from, transcript)) {}

std::string Seal::at(std::uint64_t place, std::string_view body) const {
    return hmac(key_, mac_number(place), body).substr(0, kSealSize);
}

std::string Seal::next(std::string_view body) { return at(number_++, body); }

std::string Seal::last_word(std::string_view body) const { return at(kLastWord, body); }

// The number keeps it apart from every seal: no count reaches it, and it is not the last word's.
std::string Seal::key_for(std::string_view use) const {
    return hmac(key_, mac_number(kLastWord - 1), use);
}

bool Seal::open(std::string_view& sealed) {
    if (sealed.size() < kSealSize) return false;
    const std::string_view body = sealed.substr(0, sealed.size() - kSealSize);
    const std::string_view seal = sealed.substr(body.size());
    // The expected number, or the last word. Anything else was altered, repeated or reordered.
    const bool in_turn = same_mac(seal, at(number_, body));
    if (!in_turn && !same_mac(seal, last_word(body))) return false;
    // The last word has no number in the sequence.
    if (in_turn) ++number_;
    sealed = body;
    return true;
}

}  // namespace ddprun::rendezvous
