// Accepts connections from one listening socket until it is closed. The owner decides whom to
// admit.
//
// Errors: a connection that its caller aborted before it was accepted is skipped. Any other error
// (for example: no free descriptor) pauses accepting for 100 ms and is reported once, until
// accepting works again. Callers lose nothing: they wait in the backlog.
//
// Thread: the one that runs the acceptor's io_context. Callbacks run on it, never from within a
// call to this class, and never after close() or destruction. A callback may call every function of
// this class and may destroy it.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <string>

namespace ddprun {

class AcceptLoop {
  public:
    using tcp = boost::asio::ip::tcp;
    // Receives each accepted connection and owns it from then on.
    using Take = std::function<void(tcp::socket socket, const tcp::endpoint& peer)>;
    // Receives the reason why accepting fails now: "Too many open files; trying again, see ulimit
    // -n …".
    using Failing = std::function<void(const std::string& why)>;

    // The acceptor must be bound and listening. This class never calls listen().
    AcceptLoop(tcp::acceptor acceptor, Take take, Failing failing);
    ~AcceptLoop();
    AcceptLoop(const AcceptLoop&) = delete;
    AcceptLoop& operator=(const AcceptLoop&) = delete;

    void start();
    void close();         // closes the listening socket, too
    bool paused() const;  // after an error, until its time is over

  private:
    struct State;
    std::shared_ptr<State> state_;  // handlers hold it by weak_ptr
};

}  // namespace ddprun
