// Starts and stops the thread of a worker store.
#include "rendezvous/store/store_thread.h"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

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
        return Error(ErrorCode::unavailable, "no descriptors to be had for it: " +
                                                 none.code().message() + "; raise ulimit -n");
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
    std::unique_ptr<StoreThread> store(
        new StoreThread(std::move(io), std::move(acceptors), std::move(options)));
    const Result<> running = store->run();
    if (!running) return running.error();
    return store;
}

StoreThread::StoreThread(std::unique_ptr<asio::io_context> io, Server::Acceptors acceptors,
                         ServerOptions options)
    : io_(std::move(io)), server_(std::move(acceptors), std::move(options)) {}

void StoreThread::owners_said(OwnersSaid said) {
    asio::post(*io_, [this, said = std::move(said)] { server_.owners_said(said); });
}

Result<> StoreThread::run() {
    // Before the thread exists, so that nothing is touched by two threads.
    server_.start();
    const SignalsBlocked blocked;
    try {
        thread_ = std::thread([this] { io_->run(); });
    } catch (const std::system_error& error) {
        return Error(ErrorCode::unavailable,
                     std::string("no thread to be had for it: ") + error.code().message() +
                         " (ulimit -u, ulimit -v, the pids limit of the cgroup)");
    }
    return {};
}

StoreThread::~StoreThread() {
    // No reply is worth waiting for: the workers of a generation whose store is destroyed are gone
    // or ending.
    io_->stop();
    if (thread_.joinable()) thread_.join();
}

}  // namespace ddprun::store
