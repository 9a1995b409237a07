// OpenSSL's side of a tunnel, and its two directions (tunnel.h).
#include "operator/control/tunnel.h"

#include <openssl/ssl.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

namespace ddprun::rendezvous {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr std::chrono::seconds kHandshakeTime{10};
constexpr std::size_t kPiece = 16384;
constexpr const char* kKeyName = "ddprun";
// What waits in the kernel for an operator who does not read, at each of the two sockets. It counts
// double there.
constexpr int kSendBuffer = 64 << 10;

// Where an SSL object keeps its key. Its app_data belongs to Asio.
int key_place() {
    static const int place = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
    return place;
}

const std::string& key_of(SSL* ssl) {
    return *static_cast<const std::string*>(SSL_get_ex_data(ssl, key_place()));
}

unsigned copy_key(SSL* ssl, unsigned char* to, unsigned room) {
    const std::string& key = key_of(ssl);
    if (key.size() > room) return 0;
    std::memcpy(to, key.data(), key.size());
    return static_cast<unsigned>(key.size());
}

unsigned served_key(SSL* ssl, const char* name, unsigned char* to, unsigned room) {
    return std::strcmp(name, kKeyName) == 0 ? copy_key(ssl, to, room) : 0;
}

unsigned operator_key(SSL* ssl, const char*, char* name, unsigned name_room, unsigned char* to,
                      unsigned room) {
    if (std::strlen(kKeyName) >= name_room) return 0;
    std::strcpy(name, kKeyName);
    return copy_key(ssl, to, room);
}

// No certificate is given, and none is accepted: without the key there is no connection.
asio::ssl::context context(Tunnel::Side side) {
    asio::ssl::context tls(asio::ssl::context::tls);
    SSL_CTX* const native = tls.native_handle();
    SSL_CTX_set_min_proto_version(native, TLS1_3_VERSION);
    SSL_CTX_set_ciphersuites(native, "TLS_AES_128_GCM_SHA256");  // whose hash the key is for
    SSL_CTX_set_num_tickets(native, 0);                          // no session is resumed
    SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);
    // The leader has no certificate to offer, so only a peer with the key gets anywhere.
    if (side == Tunnel::Side::operators) tls.set_verify_mode(asio::ssl::verify_peer);
    return tls;
}

}  // namespace

struct Tunnel::State : std::enable_shared_from_this<State> {
    using Local = asio::local::stream_protocol::socket;
    using Stream = asio::ssl::stream<Socket>;

    State(Socket socket, Side side, std::string key, Ended ended)
        : side(side),
          key(std::move(key)),
          tls(context(side)),
          stream(std::move(socket), tls),
          local(stream.get_executor()),
          timer(stream.get_executor()),
          ended(std::move(ended)) {}

    void start(UniqueFd fd);
    asio::awaitable<void> shake_hands();
    template <class From, class To>
    asio::awaitable<void> carry(From& from, To& to);
    template <class From, class To>
    void spawn_carry(From& from, To& to);
    void end(const Error& why);
    void cut();

    const Side side;
    const std::string key;
    asio::ssl::context tls;
    Stream stream;
    Local local;
    asio::steady_timer timer;
    Ended ended;
};

void Tunnel::State::start(UniqueFd fd) {
    SSL* const ssl = stream.native_handle();
    SSL_set_ex_data(ssl, key_place(), const_cast<std::string*>(&key));
    if (side == Side::served)
        SSL_set_psk_server_callback(ssl, served_key);
    else
        SSL_set_psk_client_callback(ssl, operator_key);
    error_code error;
    stream.next_layer().set_option(asio::ip::tcp::no_delay(true), error);
    local.assign(asio::local::stream_protocol(), fd.release(), error);
    if (side == Side::served)
        stream.next_layer().set_option(asio::socket_base::send_buffer_size(kSendBuffer), error);
    timer.expires_after(kHandshakeTime);
    timer.async_wait([weak = weak_from_this()](error_code aborted) {
        const auto self = weak.lock();
        if (self && !aborted)
            self->end(Error(ErrorCode::timed_out, "has not begun to speak TLS in 10 s"));
    });
    asio::co_spawn(
        stream.get_executor(), [self = shared_from_this()] { return self->shake_hands(); },
        [](std::exception_ptr failed) {
            if (failed) std::rethrow_exception(failed);  // no memory: ends the process
        });
}

asio::awaitable<void> Tunnel::State::shake_hands() {
    const auto self = shared_from_this();
    error_code error;
    co_await stream.async_handshake(side == Side::served ? Stream::server : Stream::client,
                                    asio::redirect_error(asio::use_awaitable, error));
    timer.cancel();
    if (!ended) co_return;
    // With the key the session counts as resumed. A peer with a certificate instead is nobody.
    if (error || !SSL_session_reused(stream.native_handle()))
        co_return end(Error(ErrorCode::refused,
                            "does not go on with TLS: " +
                                (error ? error.message() : std::string("another key was used"))));
    spawn_carry(stream, local);
    spawn_carry(local, stream);
}

template <class From, class To>
void Tunnel::State::spawn_carry(From& from, To& to) {
    asio::co_spawn(
        stream.get_executor(),
        [self = shared_from_this(), &from, &to] { return self->carry(from, to); },
        [](std::exception_ptr failed) {
            if (failed) std::rethrow_exception(failed);
        });
}

// One direction. The end of one is the end of both: HTTP/2 has no half of a connection.
template <class From, class To>
asio::awaitable<void> Tunnel::State::carry(From& from, To& to) {
    const auto self = shared_from_this();
    std::array<char, kPiece> piece;
    error_code error;
    while (ended && !error) {
        const std::size_t size = co_await from.async_read_some(
            asio::buffer(piece), asio::redirect_error(asio::use_awaitable, error));
        if (error) break;
        co_await asio::async_write(to, asio::buffer(piece, size),
                                   asio::redirect_error(asio::use_awaitable, error));
    }
    end(Error(ErrorCode::closed, error ? error.message() : "closed"));
}

// Posted, because whoever hears of it may destroy the tunnel.
void Tunnel::State::end(const Error& why) {
    const Ended told = std::exchange(ended, nullptr);
    cut();
    if (told) asio::post(stream.get_executor(), [told, why] { told(why); });
}

void Tunnel::State::cut() {
    error_code ignored;
    timer.cancel();
    stream.next_layer().close(ignored);
    local.close(ignored);
}

// Asio has no other way than exceptions to say what OpenSSL lacks.
Result<std::unique_ptr<Tunnel>> Tunnel::begin(Socket socket, Side side, std::string key,
                                              UniqueFd local, Ended ended) {
    try {
        auto state =
            std::make_shared<State>(std::move(socket), side, std::move(key), std::move(ended));
        state->start(std::move(local));
        return std::unique_ptr<Tunnel>(new Tunnel(std::move(state)));
    } catch (const boost::system::system_error& error) {
        return Error(ErrorCode::unavailable,
                     "TLS does not work on this host: " + error.code().message());
    }
}

Tunnel::~Tunnel() { close(); }

void Tunnel::close() {
    state_->ended = nullptr;
    state_->cut();
}

Result<std::pair<UniqueFd, UniqueFd>> socket_pair() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0)
        return Error(ErrorCode::unavailable,
                     std::string("cannot make a pair of sockets: ") + std::strerror(errno));
    for (const int end : ends)
        ::setsockopt(end, SOL_SOCKET, SO_SNDBUF, &kSendBuffer, sizeof kSendBuffer);
    return std::pair(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

}  // namespace ddprun::rendezvous
