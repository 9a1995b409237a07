#include "rendezvous/identity.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>
#include <limits>

#include "proto/error.h"

namespace ddprun::rendezvous {
namespace {

constexpr std::uint64_t kLastWord = std::numeric_limits<std::uint64_t>::max();

std::string number(std::uint64_t value) {
    std::string bytes;
    for (int shift = 56; shift >= 0; shift -= 8)
        bytes.push_back(static_cast<char>(value >> shift & 0xff));
    return bytes;
}

// With its length before it, so that no two transcripts are the same bytes.
std::string field(std::string_view text) { return number(text.size()).append(text); }

std::string hmac(std::string_view key, std::string_view text) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
    unsigned int size = 0;
    const auto* made = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                            reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                            digest.data(), &size);
    DDPRUN_CHECK(made && size == kProofSize, "HMAC-SHA-256 is part of every OpenSSL");
    return {reinterpret_cast<const char*>(digest.data()), size};
}

// `what` tells the uses of one secret from each other.
std::string mac(std::string_view secret, std::string_view what, Side side, const Transcript& t) {
    DDPRUN_CHECK(!secret.empty(), "a proof needs a secret");
    return hmac(secret, field("ddprun agent link") + number(kIdentityScheme) + field(what) +
                            field(side == Side::node ? "node" : "leader") + field(t.run_id) +
                            number(static_cast<std::uint64_t>(t.requeue)) + field(t.node.name) +
                            number(t.node.incarnation.value) + field(t.leader.name) +
                            number(t.leader.incarnation.value) + field(t.node_nonce) +
                            field(t.leader_nonce));
}

bool same(std::string_view a, std::string_view b) {
    return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

std::string prove(std::string_view secret, Side side, const Transcript& transcript) {
    return mac(secret, "proof", side, transcript);
}

bool is_proof(std::string_view proof, std::string_view secret, Side side,
              const Transcript& transcript) {
    return transcript.node_nonce.size() == kNonceSize &&
           transcript.leader_nonce.size() == kNonceSize &&
           same(proof, prove(secret, side, transcript));
}

Seal::Seal(std::string_view secret, Side from, const Transcript& transcript)
    : key_(mac(secret, "seal", from, transcript)) {}

std::string Seal::at(std::uint64_t place, std::string_view body) const {
    return hmac(key_, number(place).append(body)).substr(0, kSealSize);
}

std::string Seal::next(std::string_view body) { return at(number_++, body); }

std::string Seal::last_word(std::string_view body) const { return at(kLastWord, body); }

bool Seal::open(std::string_view& sealed) {
    if (sealed.size() < kSealSize) return false;
    const std::string_view body = sealed.substr(0, sealed.size() - kSealSize);
    const std::string_view seal = sealed.substr(body.size());
    const bool in_turn = same(seal, at(number_, body));
    if (!in_turn && !same(seal, last_word(body))) return false;
    if (in_turn) ++number_;
    sealed = body;
    return true;
}

}  // namespace ddprun::rendezvous
