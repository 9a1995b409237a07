// Tunnels between two sockets: bytes go through, and only with one key. A false leader with a
// certificate is none.
#include "operator/control/tunnel.h"

#include <gmock/gmock.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>
#include <memory>
#include <optional>

#include "tests/support/loop.h"

namespace ddprun::rendezvous {
namespace {

using Local = asio::local::stream_protocol::socket;

// Two ends of one TCP connection.
std::pair<tcp::socket, tcp::socket> connected(asio::io_context& loop) {
    auto acceptor = listener(loop);
    tcp::socket one(loop), other(loop);
    one.connect(acceptor.local_endpoint());
    acceptor.accept(other);
    return {std::move(one), std::move(other)};
}

// A tunnel, and what its user would have: the other end of the socket pair.
struct End {
    End(asio::io_context& loop, tcp::socket socket, Tunnel::Side side, const std::string& key)
        : user(loop) {
        auto pair = socket_pair().value();
        user.assign(asio::local::stream_protocol(), pair.second.release());
        tunnel = Tunnel::begin(std::move(socket), side, key, std::move(pair.first),
                               [this](const Error& why) { ended = why; })
                     .value();
        read();
    }
    void read() {
        user.async_read_some(asio::buffer(piece),
                             [this](boost::system::error_code error, std::size_t size) {
                                 got.append(piece, size);
                                 is_closed = error.failed();
                                 if (!error) read();
                             });
    }
    Local user;
    char piece[4096] = {};
    std::string got;
    bool is_closed = false;
    std::optional<Error> ended;
    std::unique_ptr<Tunnel> tunnel;
};

const std::string kKey(32, 'k');

TEST(Tunnel, CarriesBothWaysWithOneKey) {
    asio::io_context loop;
    auto [one, other] = connected(loop);
    End leader(loop, std::move(one), Tunnel::Side::served, kKey);
    End alice(loop, std::move(other), Tunnel::Side::operators, kKey);
    const std::string much(100'000, 'x');
    bool sent = false;
    asio::async_write(alice.user, asio::buffer(much), [&](auto, std::size_t) { sent = true; });
    asio::write(leader.user, asio::buffer("back", 4));
    EXPECT_TRUE(run_until(loop, [&] { return leader.got == much && alice.got == "back"; }));
    EXPECT_TRUE(sent);
    alice.tunnel->close();
    EXPECT_TRUE(run_until(loop, [&] { return leader.ended && leader.is_closed; }));
    EXPECT_EQ(leader.ended->code(), ErrorCode::closed);
}

TEST(Tunnel, RefusesAnotherKeyOnBothSides) {
    asio::io_context loop;
    auto [one, other] = connected(loop);
    End leader(loop, std::move(one), Tunnel::Side::served, kKey);
    End alice(loop, std::move(other), Tunnel::Side::operators, std::string(32, 'z'));
    asio::write(alice.user, asio::buffer("stop", 4));
    EXPECT_TRUE(run_until(loop, [&] { return leader.ended && alice.ended; }));
    EXPECT_EQ(leader.ended->code(), ErrorCode::refused);
    EXPECT_EQ(leader.got, "");
}

// Who sits between the two could answer with a certificate of his own instead of the key.
TEST(Tunnel, AnOperatorTakesNoCertificateForTheKey) {
    asio::io_context loop;
    auto [one, other] = connected(loop);
    EVP_PKEY* const key = EVP_EC_gen("P-256");
    X509* const certificate = X509_new();
    X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    X509_sign(certificate, key, EVP_sha256());
    asio::ssl::context tls(asio::ssl::context::tls_server);
    ASSERT_EQ(SSL_CTX_use_certificate(tls.native_handle(), certificate), 1);
    ASSERT_EQ(SSL_CTX_use_PrivateKey(tls.native_handle(), key), 1);
    X509_free(certificate);
    EVP_PKEY_free(key);
    asio::ssl::stream<tcp::socket> false_leader(std::move(one), tls);
    false_leader.async_handshake(asio::ssl::stream_base::server, [](auto) {});
    End alice(loop, std::move(other), Tunnel::Side::operators, kKey);
    EXPECT_TRUE(run_until(loop, [&] { return alice.ended.has_value(); }));
    EXPECT_EQ(alice.ended->code(), ErrorCode::refused);
}

}  // namespace
}  // namespace ddprun::rendezvous
