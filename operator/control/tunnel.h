// TLS 1.3 over a connection whose two sides have proved to each other that they have one secret.
// The key of TLS is a pre-shared key that follows from that proof (Seal::key_for), so there is no
// certificate and no second proof. With it comes a fresh Diffie-Hellman exchange: who learns the
// secret later cannot read what was said. What comes out of it goes to a local socket, and back;
// there gRPC speaks HTTP/2.
//
//   TCP socket ═TLS═ Tunnel ── socket pair ── gRPC
//
// Each direction holds 16 KiB at most, and on the side that serves the kernel holds about as much
// as that 16 times: who does not read stops the other side, and nobody else. A peer that has not
// shaken hands in 10 s, or does not have the key, is cut.
//
// Thread: the loop's. `ended` is called once, on the loop, never from within a call here, and not
// after close(). The tunnel keeps itself alive until it has ended.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/system/unique_fd.h"

namespace ddprun::rendezvous {

class Tunnel {
  public:
    using Socket = boost::asio::ip::tcp::socket;
    enum class Side { operators, served };  // by a node
    // closed: an end of the connection; timed_out; refused: the peer does not have the key, or does
    // not speak TLS.
    using Ended = std::function<void(const Error&)>;

    // `key`: 32 bytes, the same on both sides. `local`: our end of a socket pair. Begins at once.
    // Possible errors: unavailable, such as where a sandbox gives no random numbers (getrandom(2)).
    static Result<std::unique_ptr<Tunnel>> begin(Socket socket, Side side, std::string key,
                                                 UniqueFd local, Ended ended);
    ~Tunnel();  // as close()
    Tunnel(const Tunnel&) = delete;
    Tunnel& operator=(const Tunnel&) = delete;

    void close();

  private:
    struct State;
    explicit Tunnel(std::shared_ptr<State> state) : state_(std::move(state)) {}
    std::shared_ptr<State> state_;
};

// Two connected local sockets that do not block. Possible errors: unavailable, no descriptors left.
Result<std::pair<UniqueFd, UniqueFd>> socket_pair();

}  // namespace ddprun::rendezvous
