// HMAC-SHA-256 from OpenSSL, and what goes into each proof and seal.
#include "rendezvous/identity/identity.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <array>
#include <limits>
#include <memory>

#include "base/error.h"

namespace ddprun::rendezvous {
namespace {

// The frame number of the last word; no count reaches it.
constexpr std::uint64_t kLastWord = std::numeric_limits<std::uint64_t>::max();

// Big endian, eight bytes: the same bytes on every host.
std::string number(std::uint64_t value) {
    std::string bytes;
    for (int shift = 56; shift >= 0; shift -= 8)
        bytes.push_back(static_cast<char>(value >> shift & 0xff));
    return bytes;
}

// A text with its length in front, so that two different transcripts never give the same bytes.
std::string field(std::string_view text) { return number(text.size()).append(text); }

struct FreeContext {
    void operator()(EVP_MAC_CTX* context) const { EVP_MAC_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_MAC_CTX, FreeContext>;

// OpenSSL's own errors here mean a broken build, so they end the process.
Context hmac_sha256() {
    EVP_MAC* hmac = EVP_MAC_fetch(nullptr, OSSL_MAC_NAME_HMAC, nullptr);
    Context context(hmac ? EVP_MAC_CTX_new(hmac) : nullptr);
    EVP_MAC_free(hmac);
    std::string digest = OSSL_DIGEST_NAME_SHA2_256;
    const OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest.data(), digest.size()),
        OSSL_PARAM_construct_end()};
    DDPRUN_CHECK(context && EVP_MAC_CTX_set_params(context.get(), parameters),
                 "HMAC-SHA-256 is part of every OpenSSL");
    return context;
}

using Digest = std::array<unsigned char, kProofSize>;

std::string_view text(const Digest& digest) {
    return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

// The MAC of `head` and `rest`, one after the other, without copying a large frame.
Digest hmac(std::string_view key, std::string_view head, std::string_view rest = {}) {
    // Kept, because making a context takes three times as long as using it, and a leader seals and
    // opens ten thousand frames a second. Each thread has its own.
    thread_local const Context kept = hmac_sha256();
    EVP_MAC_CTX* const context = kept.get();
    const auto bytes = [](std::string_view of) {
        return reinterpret_cast<const unsigned char*>(of.data());
    };
    Digest digest;
    std::size_t size = 0;
    const bool made = EVP_MAC_init(context, bytes(key), key.size(), nullptr) &&
                      EVP_MAC_update(context, bytes(head), head.size()) &&
                      EVP_MAC_update(context, bytes(rest), rest.size()) &&
                      EVP_MAC_final(context, digest.data(), &size, digest.size());
    DDPRUN_CHECK(made && size == kProofSize, "HMAC-SHA-256 is part of every OpenSSL");
    return digest;
}

// `what` separates the uses of one secret: a proof can never serve as the key of a seal.
std::string mac(std::string_view secret, std::string_view what, Side side, const Transcript& t) {
    // With an empty key anybody could compute the MAC.
    DDPRUN_CHECK(!secret.empty(), "a proof needs a secret");
    const Digest made =
        hmac(secret, field("ddprun agent link") + number(kIdentityScheme) + field(what) +
                         field(side == Side::node ? "node" : "leader") + field(t.run_id) +
                         number(static_cast<std::uint64_t>(t.requeue)) + field(t.node.name) +
                         number(t.node.incarnation.value) + field(t.leader.name) +
                         number(t.leader.incarnation.value) + field(t.node_nonce) +
                         field(t.leader_nonce));
    // The context holds the key until it gets another. The secret must not stay there, because core
    // files have that memory; the key of a seal dies with its connection.
    hmac(std::string_view("\0", 1), {});
    return std::string(text(made));
}

// Compares in constant time; a usual comparison would tell by its duration how many bytes are
// right.
bool same(std::string_view a, std::string_view b) {
    return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
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
           same(proof, prove(secret, side, transcript));
}

Seal::Seal(std::string_view secret, Side from, const Transcript& transcript)
    : key_(mac(secret, "seal", from, transcript)) {}

std::string Seal::at(std::uint64_t place, std::string_view body) const {
    return std::string(text(hmac(key_, number(place), body)).substr(0, kSealSize));
}

std::string Seal::next(std::string_view body) { return at(number_++, body); }

std::string Seal::last_word(std::string_view body) const { return at(kLastWord, body); }

bool Seal::open(std::string_view& sealed) {
    if (sealed.size() < kSealSize) return false;
    const std::string_view body = sealed.substr(0, sealed.size() - kSealSize);
    const std::string_view seal = sealed.substr(body.size());
    // The expected number, or the last word. Anything else was altered, repeated or reordered.
    const bool in_turn = same(seal, at(number_, body));
    if (!in_turn && !same(seal, last_word(body))) return false;
    // The last word has no number in the sequence.
    if (in_turn) ++number_;
    sealed = body;
    return true;
}

}  // namespace ddprun::rendezvous
