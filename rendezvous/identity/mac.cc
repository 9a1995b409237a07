// HMAC-SHA-256 from OpenSSL (mac.h).
#include "rendezvous/identity/mac.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <memory>

#include "base/error.h"

namespace ddprun::rendezvous {
namespace {

struct FreeContext {
    void operator()(EVP_MAC_CTX* context) const { EVP_MAC_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_MAC_CTX, FreeContext>;

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

}  // namespace

std::string hmac(std::string_view key, std::string_view head, std::string_view rest) {
    DDPRUN_CHECK(!key.empty(), "a MAC needs a key");
    // Kept, because making a context takes three times as long as using it, and a leader seals and
    // opens ten thousand frames a second. Each thread has its own.
    thread_local const Context kept = hmac_sha256();
    EVP_MAC_CTX* const context = kept.get();
    const auto bytes = [](std::string_view of) {
        return reinterpret_cast<const unsigned char*>(of.data());
    };
    std::string mac(kMacSize, '\0');
    std::size_t size = 0;
    const bool made =
        EVP_MAC_init(context, bytes(key), key.size(), nullptr) &&
        EVP_MAC_update(context, bytes(head), head.size()) &&
        EVP_MAC_update(context, bytes(rest), rest.size()) &&
        EVP_MAC_final(context, reinterpret_cast<unsigned char*>(mac.data()), &size, mac.size());
    DDPRUN_CHECK(made && size == kMacSize, "HMAC-SHA-256 is part of every OpenSSL");
    return mac;
}

std::string hmac_of_secret(std::string_view secret, std::string_view text) {
    std::string mac = hmac(secret, text);
    // The context holds the key until it gets another. The secret must not stay there, because core
    // files have that memory.
    hmac(std::string_view("\0", 1), {});
    return mac;
}

std::string mac_number(std::uint64_t value) {
    std::string bytes;
    for (int shift = 56; shift >= 0; shift -= 8)
        bytes.push_back(static_cast<char>(value >> shift & 0xff));
    return bytes;
}

std::string mac_field(std::string_view text) { return mac_number(text.size()).append(text); }

bool same_mac(std::string_view a, std::string_view b) {
    return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace ddprun::rendezvous
