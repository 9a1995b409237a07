// Finds and holds a free port for the workers' store.
#include "agent/host/master_port.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <random>

namespace ddprun::agent {
namespace {

// Ports are tried at random between kFirst and the kernel's own range, at most kAttempts times.
// Random, so that several ddpruns on one host rarely try the same ports.
constexpr int kFirst = 20'000, kAttempts = 64;

// Returns a socket that is bound but does not listen, or -1 with errno set. SO_REUSEADDR is not
// used: with it, two sockets may bind the same port as long as neither listens, so the port would
// not be ours.
UniqueFd bind_v4(in_addr_t where, int port) {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(where);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    if (fd.get() >= 0 &&
        ::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
        fd.reset();
    return fd;
}

// Binds all addresses: IPv6 and IPv4 with one socket, or IPv4 only on a host without IPv6.
UniqueFd bind_all(int port) {
    UniqueFd fd(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (fd.get() < 0) return bind_v4(INADDR_ANY, port);
    const int off = 0;
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(static_cast<std::uint16_t>(port));
    if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
    // IPv6 is compiled into the kernel but switched off.
    if (errno == EADDRNOTAVAIL) return bind_v4(INADDR_ANY, port);
    return UniqueFd();
}

UniqueFd bind_port(bool loopback_only, int port) {
    return loopback_only ? bind_v4(INADDR_LOOPBACK, port) : bind_all(port);
}

std::uint16_t port_of(int fd) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
    return ntohs(address.ss_family == AF_INET6
                     ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                     : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

// The last port that may be offered: the two ports after it must also be below the range from which
// the kernel gives ports to clients.
int last_port() {
    int low = 32'768;
    std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> low;
    return std::min(low, 65'536) - 3;
}

}  // namespace

Result<std::uint16_t> MasterPort::offer() {
    // Each Join offers a port. The offer stays the same until a generation uses it.
    if (port_ != 0) return port_;
    std::random_device device;
    const int last = last_port();
    for (int i = 0; i < kAttempts && last > kFirst; ++i) {
        const int port = std::uniform_int_distribution(kFirst, last)(device);
        listener_ = bind_port(loopback_only_, port);
        if (listener_.get() < 0) continue;
        // Programs may bind these ports on all addresses, even if ours is bound to loopback only.
        neighbours_[0] = bind_all(port + 1);
        neighbours_[1] = bind_all(port + 2);
        if (neighbours_[0].get() >= 0 && neighbours_[1].get() >= 0) break;
    }
    // If no three neighbouring ports are free, any port is better than none: only programs that use
    // MASTER_PORT+1 or +2 may then fail.
    const bool whole = neighbours_[0].get() >= 0 && neighbours_[1].get() >= 0;
    if (!whole || listener_.get() < 0) listener_ = bind_port(loopback_only_, 0);
    if (listener_.get() < 0 || ::listen(listener_.get(), SOMAXCONN) != 0)
        return Error(ErrorCode::unavailable,
                     std::string("no port for the workers' store: ") + std::strerror(errno));
    port_ = port_of(listener_.get());
    return port_;
}

UniqueFd MasterPort::take(std::uint16_t port) {
    if (port != port_ || port_ == 0) return UniqueFd();
    // The neighbours are released at the last moment, just before the workers start.
    port_ = 0;
    for (UniqueFd& neighbour : neighbours_) neighbour.reset();
    return std::move(listener_);
}

}  // namespace ddprun::agent
