#include "base/loop/accept_loop.h"

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <utility>

namespace ddprun {

using boost::system::error_code;

namespace {

constexpr std::chrono::milliseconds kPause{100};

}  // namespace

struct AcceptLoop::State : std::enable_shared_from_this<State> {
    State(tcp::acceptor acceptor, Take take, Failing failing)
        : acceptor(std::move(acceptor)),
          pause(this->acceptor.get_executor()),
          take(std::move(take)),
          failing(std::move(failing)) {}

    void accept() {
        acceptor.async_accept(peer,
                              [weak = weak_from_this()](error_code error, tcp::socket socket) {
                                  const auto self = weak.lock();
                                  if (self && self->acceptor.is_open())
                                      self->accepted(error, std::move(socket));
                              });
    }

    void accepted(error_code error, tcp::socket socket) {
        if (error && error != boost::asio::error::connection_aborted) return wait(error);
        if (!error) {
            told = false;
            take(std::move(socket), peer);
        }
        if (acceptor.is_open()) accept();
    }

    // The caller stays in the backlog: trying at once would spin.
    void wait(error_code error) {
        pause.expires_after(kPause);
        pause.async_wait([weak = weak_from_this()](error_code aborted) {
            const auto self = weak.lock();
            if (self && !aborted && self->acceptor.is_open()) self->accept();
        });
        if (!std::exchange(told, true))
            failing(error.message() +
                    "; trying again, see ulimit -n if these are file descriptors");
    }

    tcp::acceptor acceptor;
    tcp::endpoint peer;  // of the connection being accepted
    boost::asio::steady_timer pause;
    const Take take;
    const Failing failing;
    bool told = false;  // of the failure, until accepting works again
};

AcceptLoop::AcceptLoop(tcp::acceptor acceptor, Take take, Failing failing)
    : state_(std::make_shared<State>(std::move(acceptor), std::move(take), std::move(failing))) {}

AcceptLoop::~AcceptLoop() { close(); }

void AcceptLoop::start() { state_->accept(); }

void AcceptLoop::close() {
    error_code ignored;  // nothing is lost with a listening socket
    state_->acceptor.close(ignored);
    state_->pause.cancel();
}

}  // namespace ddprun
