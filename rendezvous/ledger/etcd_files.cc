// Reads and checks the files for etcd (etcd_files.h).
#include "rendezvous/ledger/etcd_files.h"

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "base/system/private_file.h"

namespace ddprun::rendezvous {
namespace {

constexpr std::size_t kLargestFile = 1 << 20;  // a bundle of all authorities has 200 KiB

struct FreeBio {
    void operator()(BIO* bio) const { BIO_free(bio); }
};
struct FreeCertificate {
    void operator()(X509* certificate) const { X509_free(certificate); }
};
struct FreeKey {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using Certificate = std::unique_ptr<X509, FreeCertificate>;
using Key = std::unique_ptr<EVP_PKEY, FreeKey>;

std::unique_ptr<BIO, FreeBio> reader(std::string_view pem) {
    return std::unique_ptr<BIO, FreeBio>(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

// The first certificate of the text; null: there is none.
Certificate certificate_of(std::string_view pem) {
    Certificate found(PEM_read_bio_X509(reader(pem).get(), nullptr, nullptr, nullptr));
    ERR_clear_error();
    return found;
}

// Null also for a key with a passphrase. Nobody could type it, so none is asked for.
Key key_of(std::string_view pem) {
    const auto no_passphrase = [](char*, int, int, void*) { return -1; };
    Key found(PEM_read_bio_PrivateKey(reader(pem).get(), nullptr, no_passphrase, nullptr));
    ERR_clear_error();
    return found;
}

std::string end_of(const X509& certificate) {
    const std::unique_ptr<BIO, FreeBio> text(BIO_new(BIO_s_mem()));
    ASN1_TIME_print(text.get(), X509_get0_notAfter(&certificate));
    char* data = nullptr;
    const long size = BIO_get_mem_data(text.get(), &data);
    return std::string(data, static_cast<std::size_t>(size));
}

Result<std::string> read_certificates(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) return Error(ErrorCode::usage, path + ": " + std::strerror(errno));
    std::string text(kLargestFile + 1, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));  // nothing of a folder
    text.resize(static_cast<std::size_t>(file.gcount()));
    const bool some = text.size() <= kLargestFile && certificate_of(text);
    if (!some) return Error(ErrorCode::usage, path + ": is no certificate in PEM format");
    return text;
}

Error of_option(const char* option, const Error& fault) {
    return usage_error(std::string(option) + ": " + fault.sentence());
}

Result<> read_user(LedgerAccess& access) {
    const auto text = read_private_file(access.files.user, Links::follow);
    if (!text) return of_option("--etcd-user-file", text.error());
    const std::string_view words = *text;
    const std::size_t colon = words.find(':');
    if (colon == 0 || colon == std::string_view::npos || colon + 1 == words.size())
        return usage_error("--etcd-user-file: " + access.files.user +
                           ": not one line NAME:PASSWORD");
    access.user = words.substr(0, colon);
    access.password = words.substr(colon + 1);
    return {};
}

// gRPC would say nothing of a key of another certificate, or of one that has expired, but that the
// server does not answer.
Result<> read_own_certificate(LedgerAccess& access) {
    auto cert = read_certificates(access.files.cert);
    if (!cert) return of_option("--etcd-cert", cert.error());
    auto key = read_private_file(access.files.key, Links::follow, kLargestKey);
    if (!key) return of_option("--etcd-key", key.error());
    const Certificate certificate = certificate_of(*cert);
    const Key own = key_of(*key);
    if (!own)
        return usage_error("--etcd-key: " + access.files.key +
                           ": is no private key in PEM format without a passphrase");
    const bool fits = X509_check_private_key(certificate.get(), own.get()) == 1;
    ERR_clear_error();
    if (!fits)
        return usage_error("--etcd-key: " + access.files.key + ": is not the key of " +
                           access.files.cert + " (--etcd-cert)");
    if (X509_cmp_current_time(X509_get0_notAfter(certificate.get())) < 0)
        return usage_error("--etcd-cert: " + access.files.cert + ": has expired on " +
                           end_of(*certificate) + "; ask for a new one");
    access.cert = std::move(*cert);
    access.key = std::move(*key);
    return {};
}

}  // namespace

Result<LedgerAccessPointer> read_ledger_access(const EtcdFiles& files, const LedgerPlace& place,
                                               std::string_view secret) {
    if (!is_in_etcd(place)) return LedgerAccessPointer();
    if (auto good = check_etcd_files(files, place); !good) return good.error();
    // The host's openssl.cnf does not concern a static binary, and reading it takes time.
    ::OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
    auto access = std::make_shared<LedgerAccess>();
    access->files = files;
    if (!files.user.empty())
        if (auto read = read_user(*access); !read) return read.error();
    if (!files.cacert.empty()) {
        auto text = read_certificates(files.cacert);
        if (!text) return of_option("--etcd-cacert", text.error());
        access->cacert = std::move(*text);
    }
    if (!files.cert.empty())
        if (auto read = read_own_certificate(*access); !read) return read.error();
    access->seal = LedgerSeal(secret);
    return LedgerAccessPointer(std::move(access));
}

}  // namespace ddprun::rendezvous
