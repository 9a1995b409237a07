// Accepts connections one at a time, and pauses after an error.
#include "base/loop/accept_loop.h"

#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <utility>

namespace ddprun {

using boost::system::error_code;

namespace {

// The pause after an error. Without it, a process that has no free descriptor would spin.
constexpr std::chrono::milliseconds kPause{100};

}  // namespace

// Handlers hold this object by weak_ptr: the AcceptLoop may be destroyed from within a callback,
// while an accept or a timer is still pending in Asio.
template <class Protocol>
struct AcceptLoopOf<Protocol>::State : std::enable_shared_from_this<State> {
    using Socket = typename Protocol::socket;
    State(Acceptor acceptor, Take take, Failing failing)
        : acceptor(std::move(acceptor)),
          pause(this->acceptor.get_executor()),
          take(std::move(take)),
          failing(std::move(failing)) {}

    void accept() {
        acceptor.async_accept(peer,
                              [weak = this->weak_from_this()](error_code error, Socket socket) {
                                  const auto self = weak.lock();
                                  if (self && self->acceptor.is_open())
                                      self->accepted(error, std::move(socket));
                              });
    }

    // ECONNABORTED means that a caller gave up while it waited in the backlog. That is no problem
    // of ours, so accepting continues at once.
    void accepted(error_code error, Socket socket) {
        if (error && error != boost::asio::error::connection_aborted) return wait(error);
        // `take` may destroy the AcceptLoop. `self` in accept() keeps this object alive until the
        // handler returns.
        if (!error) {
            told = false;
            take(std::move(socket), peer);
        }
        // `take` may also have closed the acceptor.
        if (acceptor.is_open()) accept();
    }

    // A caller that was not accepted stays in the backlog. Accepting again at once would fail again
    // and keep the CPU busy, so the loop waits.
    void wait(error_code error) {
        paused = true;
        pause.expires_after(kPause);
        pause.async_wait([weak = this->weak_from_this()](error_code aborted) {
            const auto self = weak.lock();
            if (!self || aborted) return;
            self->paused = false;
            if (self->acceptor.is_open()) self->accept();
        });
        if (!std::exchange(told, true))
            failing(error.message() +
                    "; trying again, see ulimit -n if these are file descriptors");
    }

    Acceptor acceptor;
    typename Protocol::endpoint peer;  // of the connection that is being accepted
    boost::asio::steady_timer pause;
    const Take take;
    const Failing failing;
    bool paused = false;
    bool told = false;  // the owner knows of the failure; reset when accepting works again
};

template <class Protocol>
AcceptLoopOf<Protocol>::AcceptLoopOf(Acceptor acceptor, Take take, Failing failing)
    : state_(std::make_shared<State>(std::move(acceptor), std::move(take), std::move(failing))) {}

template <class Protocol>
AcceptLoopOf<Protocol>::~AcceptLoopOf() {
    close();
}

template <class Protocol>
void AcceptLoopOf<Protocol>::start() {
    state_->accept();
}

template <class Protocol>
bool AcceptLoopOf<Protocol>::paused() const {
    return state_->paused;
}

template <class Protocol>
void AcceptLoopOf<Protocol>::close() {
    error_code ignored;  // closing a listening socket loses no data
    state_->acceptor.close(ignored);
    state_->pause.cancel();
    state_->paused = false;
}

template class AcceptLoopOf<boost::asio::ip::tcp>;
template class AcceptLoopOf<boost::asio::local::stream_protocol>;

}  // namespace ddprun
