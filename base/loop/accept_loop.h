// Takes connections from one listening socket, for as long as it is open. One connection that was
// given up before we took it is passed over; any other error (no descriptor left) pauses accepting
// for 100 ms, is told once until accepting works again, and loses nobody: callers wait in the
// backlog. Whom to admit is the owner's business.
//
// Thread: the one that runs the acceptor's io_context. Callbacks come on it, never from within a
// call here, and none after close() or destruction; in them everything may be called, destruction
// included.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <string>

namespace ddprun {

class AcceptLoop {
  public:
    using tcp = boost::asio::ip::tcp;
    using Take = std::function<void(tcp::socket socket, const tcp::endpoint& peer)>;
    // Why it cannot accept now: "Too many open files; trying again, see ulimit -n …".
    using Failing = std::function<void(const std::string& why)>;

    // The acceptor is bound and listening; a closed one is never listened on.
    AcceptLoop(tcp::acceptor acceptor, Take take, Failing failing);
    ~AcceptLoop();
    AcceptLoop(const AcceptLoop&) = delete;
    AcceptLoop& operator=(const AcceptLoop&) = delete;

    void start();
    void close();  // and the listening socket with it

  private:
    struct State;
    std::shared_ptr<State> state_;  // handlers hold it weakly
};

}  // namespace ddprun
