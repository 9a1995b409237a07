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

template <class Protocol>
class AcceptLoopOf {  // tcp, or local::stream_protocol
  public:
    using Acceptor = typename Protocol::acceptor;
    // Receives each accepted connection and owns it from then on.
    using Take = std::function<void(typename Protocol::socket socket,
                                    const typename Protocol::endpoint& peer)>;
    // Receives the reason why accepting fails now: "Too many open files; trying again, see ulimit
    // -n …".
    using Failing = std::function<void(const std::string& why)>;

    // The acceptor must be bound and listening. This class never calls listen().
    AcceptLoopOf(Acceptor acceptor, Take take, Failing failing);
    ~AcceptLoopOf();
    AcceptLoopOf(const AcceptLoopOf&) = delete;
    AcceptLoopOf& operator=(const AcceptLoopOf&) = delete;

    void start();
    void close();         // closes the listening socket, too
    bool paused() const;  // after an error, until its time is over

  private:
    struct State;
    std::shared_ptr<State> state_;  // handlers hold it by weak_ptr
};

using AcceptLoop = AcceptLoopOf<boost::asio::ip::tcp>;

}  // namespace ddprun
