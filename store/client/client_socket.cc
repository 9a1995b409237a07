// Non-blocking sockets and poll(), so that every wait can have a deadline.
#include "store/client/client_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

namespace ddprun::store {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

// `closed` tells callers that the connection was lost; everything else means that there is none.
Error from_errno(int number) {
    const bool ended = number == ECONNRESET || number == EPIPE;
    return Error(ended ? ErrorCode::closed : ErrorCode::unavailable, std::strerror(number));
}

Result<Addresses> look_up(const std::string& host, std::uint16_t port) {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICSERV;
    addrinfo* found = nullptr;
    const int failure = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
    Addresses addresses(found, &::freeaddrinfo);
    if (failure == 0) return addresses;
    return Error(ErrorCode::unavailable, std::string("no address: ") + ::gai_strerror(failure));
}

// Rounded up. A wait that ended just before its deadline would be started again for less than a
// millisecond.
int milliseconds_until(Deadline deadline) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - Deadline::clock::now());
    // An hour at most, since poll() takes an int; wait_for() calls again.
    return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 3'600'000));
}

// The share of one address of a name. An address that drops packets must leave time for the other
// ones.
Deadline share_of(Deadline deadline, const addrinfo* at) {
    int left = 0;
    for (; at; at = at->ai_next) ++left;
    const auto now = Deadline::clock::now();
    return now + (deadline - now) / left;
}

}  // namespace

ClientSocket::ClientSocket(ClientSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

ClientSocket& ClientSocket::operator=(ClientSocket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
}

ClientSocket::~ClientSocket() {
    if (fd_ >= 0) ::close(fd_);
}

Result<ClientSocket> ClientSocket::connect(const std::string& host, std::uint16_t port,
                                           Deadline deadline) {
    const Result<Addresses> addresses = look_up(host, port);
    if (!addresses) return addresses.error();
    Error last(ErrorCode::unavailable, "no address");
    for (const addrinfo* at = addresses->get(); at; at = at->ai_next) {
        ClientSocket socket(::socket(at->ai_family, at->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC,
                                     at->ai_protocol));
        if (socket.fd_ < 0) {
            last = from_errno(errno);
            continue;
        }
        // A non-blocking connect() only starts here. POLLOUT reports its end, and SO_ERROR its
        // result.
        if (::connect(socket.fd_, at->ai_addr, at->ai_addrlen) != 0 && errno != EINPROGRESS) {
            last = from_errno(errno);
            continue;
        }
        const Result<> done = socket.wait_for(POLLOUT, share_of(deadline, at));
        int failure = 0;
        socklen_t size = sizeof failure;
        ::getsockopt(socket.fd_, SOL_SOCKET, SO_ERROR, &failure, &size);
        if (done && failure == 0) {
            const int on = 1;  // requests are small and each is waited for
            ::setsockopt(socket.fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            return socket;
        }
        last = done ? from_errno(failure) : done.error();
    }
    return last;
}

// A signal interrupts poll() (EINTR); the wait then goes on until its deadline.
Result<> ClientSocket::wait_for(short events, Deadline deadline) {
    for (;;) {
        pollfd entry{fd_, events, 0};
        const int left = milliseconds_until(deadline);
        const int ready = ::poll(&entry, 1, left);
        if (ready > 0) return {};
        if (ready < 0 && errno != EINTR) return from_errno(errno);
        if (ready == 0 && milliseconds_until(deadline) == 0) {
            return Error(ErrorCode::timed_out, "no answer in time");
        }
    }
}

Result<> ClientSocket::send(std::string_view bytes, Deadline deadline) {
    while (!bytes.empty()) {
        // MSG_NOSIGNAL: a peer that has gone must not kill a trainer by SIGPIPE.
        const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent >= 0) {
            bytes.remove_prefix(static_cast<std::size_t>(sent));
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            if (const Result<> ready = wait_for(POLLOUT, deadline); !ready) return ready;
        } else if (errno != EINTR) {
            return from_errno(errno);
        }
    }
    return {};
}

Result<> ClientSocket::receive(char* into, std::size_t count, Deadline deadline) {
    while (count > 0) {
        const Result<std::size_t> got = receive_some(into, count, deadline);
        if (!got) return got.error();
        into += *got;
        count -= *got;
    }
    return {};
}

Result<std::size_t> ClientSocket::receive_some(char* into, std::size_t room, Deadline deadline) {
    for (;;) {
        const ssize_t got = ::recv(fd_, into, room, 0);
        if (got > 0) return static_cast<std::size_t>(got);
        if (got == 0) return Error(ErrorCode::closed, "the connection was closed by the store");
        if (errno == EAGAIN || errno == EWOULDBLOCK) {
            if (const Result<> ready = wait_for(POLLIN, deadline); !ready) return ready.error();
        } else if (errno != EINTR) {
            return from_errno(errno);
        }
    }
}

}  // namespace ddprun::store
