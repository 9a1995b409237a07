// Starts and stops the thread of a worker store.
#include "store/server/store_thread.h"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace ddprun::store {
namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

// How often the Asio loop is looked at while something there waits for its time.
constexpr int kLookMilliseconds = 20;
// Connections that are accepted in a row, before those that are there get their turn.
constexpr int kAsioInARow = 16;

// Whether the socket was bound to an IPv4 or an IPv6 address. The agent hands over a bare
// descriptor, and Asio must be told.
Result<tcp> protocol_of(int fd) {
    sockaddr_storage name{};
    socklen_t size = sizeof name;
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size) == 0) {
        if (name.ss_family == AF_INET) return tcp::v4();
        if (name.ss_family == AF_INET6) return tcp::v6();
        errno = EAFNOSUPPORT;
    }
    return Error(ErrorCode::internal, "descriptor " + std::to_string(fd) +
                                          " for the worker store: " + std::strerror(errno));
}

Error no_descriptors(const std::string& why) {
    return Error(ErrorCode::unavailable,
                 "no descriptors to be had for it: " + why + "; raise ulimit -n");
}

// Blocks all signals while the thread is started. A new thread inherits the mask, so a signal is
// never delivered to it.
class SignalsBlocked {
  public:
    SignalsBlocked() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;

  private:
    sigset_t before_{};
};

}  // namespace

Result<std::unique_ptr<StoreThread>> StoreThread::start(std::vector<UniqueFd> listening,
                                                        ServerOptions options) {
    std::unique_ptr<asio::io_context> io;
    try {
        io = std::make_unique<asio::io_context>(1);  // 1: only one thread runs this loop
    } catch (const boost::system::system_error& none) {
        return no_descriptors(none.code().message());
    }
    Server::Acceptors acceptors;
    for (UniqueFd& fd : listening) {
        const Result<tcp> protocol = protocol_of(fd.get());
        if (!protocol) return protocol.error();
        error_code error;
        acceptors.emplace_back(*io).assign(*protocol, fd.get(), error);
        if (error)
            return Error(ErrorCode::internal,
                         "the listening socket of the worker store: " + error.message());
        (void)fd.release();
    }
    std::vector<int> sockets;
    for (tcp::acceptor& acceptor : acceptors) sockets.push_back(acceptor.native_handle());
    auto wake = WakePipe::make("it");
    if (!wake) return wake.error();
    try {
        std::unique_ptr<StoreThread> store(new StoreThread(std::move(io), std::move(acceptors),
                                                           std::move(options), std::move(*wake)));
        for (const int fd : sockets) store->wake_at(fd);
        const Result<> running = store->run();
        if (!running) return running.error();
        return store;
    } catch (const std::system_error& none) {
        return no_descriptors(none.code().message());
    }
}

StoreThread::StoreThread(std::unique_ptr<asio::io_context> io, Server::Acceptors acceptors,
                         ServerOptions options, WakePipe wake)
    : io_(std::move(io)),
      wake_(std::move(wake)),
      server_(std::move(acceptors), std::move(options)) {
    wake_at(wake_.fd(), &wake_);
}

void StoreThread::AsioIsDue::on_ready(bool, bool) {
    due = true;
    if (pipe) pipe->drain();
}

// Edge-triggered: what the Asio loop leaves there (callers, during a pause) is no reason to wake
// again.
void StoreThread::wake_at(int fd, const WakePipe* pipe) {
    const auto error =
        server_.sockets().want(wakers_.emplace_back(asio_is_due_, pipe), fd, EPOLLIN | EPOLLET);
    if (error) throw std::system_error(error);
}

void StoreThread::owners_said(OwnersSaid said) {
    asio::post(*io_, [this, said = std::move(said)] { server_.owners_said(said); });
    wake_.wake();
}

void StoreThread::set(std::string key, std::string value) {
    asio::post(*io_, [this, key = std::move(key), value = std::move(value)]() mutable {
        server_.set(std::move(key), std::move(value));
    });
    wake_.wake();
}

// The thread sleeps for its sockets, and not in the Asio loop, which is looked at when it is due.
void StoreThread::serve() {
    const auto work = asio::make_work_guard(*io_);  // an idle loop would be over
    while (!stopping_) {
        int ran = 0;
        if (std::exchange(asio_is_due_, false))
            while (ran < kAsioInARow && io_->poll_one() > 0) ++ran;
        const bool has_more = ran == kAsioInARow, waits = server_.waits_for_time();
        asio_is_due_ = has_more || waits;
        server_.sockets().turn(has_more ? 0 : waits ? kLookMilliseconds : -1);
    }
}

Result<> StoreThread::run() {
    // Before the thread exists, so that nothing is touched by two threads.
    server_.start();
    const SignalsBlocked blocked;
    auto thread = start_thread("it", [this] { serve(); });
    if (!thread) return thread.error();
    thread_ = std::move(*thread);
    return {};
}

StoreThread::~StoreThread() {
    // No reply is worth waiting for: the workers of a generation whose store is destroyed are gone
    // or ending.
    stopping_ = true;
    wake_.wake();
    if (thread_.joinable()) thread_.join();
}

}  // namespace ddprun::store
