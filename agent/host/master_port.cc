// Finds and holds a free port for the workers' store.
#include "agent/host/master_port.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <random>
#include <utility>

namespace ddprun::agent {
namespace {

namespace ip = boost::asio::ip;

// Ports are tried at random between kFirst and the kernel's own range, at most kAttempts times.
// Random, so that several ddpruns on one host rarely try the same ports.
constexpr int kFirst = 20'000, kAttempts = 64;

// Returns a socket that is bound but does not listen, or -1 with errno set. SO_REUSEADDR is not
// used: with it, two sockets may bind the same port as long as neither listens, so the port would
// not be ours.
UniqueFd bind_one(const ip::address& where, int port) {
    const ip::tcp::endpoint at(where, static_cast<std::uint16_t>(port));
    UniqueFd fd(::socket(at.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (fd.get() < 0) return fd;
    // Beside a socket for 127.0.0.1 there is one for ::1.
    const int on = 1;
    if (where.is_v6()) ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (::bind(fd.get(), at.data(), static_cast<socklen_t>(at.size())) != 0) fd.reset();
    return fd;
}

// Binds all addresses: IPv6 and IPv4 with one socket, or IPv4 only on a host without IPv6.
UniqueFd bind_all(int port) {
    UniqueFd fd(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (fd.get() < 0) return bind_one(ip::address_v4::any(), port);
    const int off = 0;
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(static_cast<std::uint16_t>(port));
    if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
    // IPv6 is compiled into the kernel but switched off.
    if (errno == EADDRNOTAVAIL) return bind_one(ip::address_v4::any(), port);
    return UniqueFd();
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

void MasterPort::choose_place(const std::string& told, const std::vector<std::string>& local) {
    told_ = told;
    places_.clear();
    boost::system::error_code none;
    const ip::address address = ip::make_address(told, none);
    if (loopback_only_) {
        places_ = {ip::address_v4::loopback()};
        where_ = "127.0.0.1 only";
    } else if (none) {
        where_ = "all addresses, since other hosts may take the name " + told +
                 " for another of them; an address instead (--local-addr, --rdzv-endpoint) is "
                 "listened on alone";
    } else if (std::find(local.begin(), local.end(), told) == local.end()) {
        where_ = "all addresses, since " + told + " is none of this host";
    } else {
        places_ = {address, ip::address_v4::loopback(), ip::address_v6::loopback()};
        // Each once.
        places_.erase(std::remove(places_.begin() + 1, places_.end(), address), places_.end());
        where_ = told + " and loopback";
    }
}

// Sockets that are bound and do not listen; none if the first place cannot be had. A host may have
// no IPv6.
std::vector<UniqueFd> MasterPort::bind_port(int port) const {
    std::vector<UniqueFd> bound;
    bound.push_back(places_.empty() ? bind_all(port) : bind_one(places_.front(), port));
    if (!bound.front()) return {};
    port = port_of(bound.front().get());
    for (std::size_t i = 1; i < places_.size(); ++i) {
        UniqueFd fd = bind_one(places_[i], port);
        if (!fd && errno == EADDRINUSE) return {};
        if (fd) bound.push_back(std::move(fd));
    }
    return bound;
}

Result<std::uint16_t> MasterPort::offer(const std::string& told,
                                        const std::vector<std::string>& local) {
    // Each Join offers a port. The offer stays the same until a generation uses it.
    if (port_ != 0 && told == told_) return port_;
    choose_place(told, local);
    std::random_device device;
    const int last = last_port();
    for (int i = 0; i < kAttempts && last > kFirst; ++i) {
        const int port = std::uniform_int_distribution(kFirst, last)(device);
        listeners_ = bind_port(port);
        if (listeners_.empty()) continue;
        // Programs may bind these ports on all addresses, even if ours is bound to one only.
        neighbours_[0] = bind_all(port + 1);
        neighbours_[1] = bind_all(port + 2);
        if (neighbours_[0].get() >= 0 && neighbours_[1].get() >= 0) break;
    }
    // If no three neighbouring ports are free, any port is better than none: only programs that use
    // MASTER_PORT+1 or +2 may then fail.
    const bool whole = neighbours_[0].get() >= 0 && neighbours_[1].get() >= 0;
    for (int i = 0; i < kAttempts && (listeners_.empty() || (!whole && i == 0)); ++i)
        listeners_ = bind_port(0);
    // The address may have gone since it was looked up.
    if (listeners_.empty() && !places_.empty() && !loopback_only_) {
        places_.clear();
        where_ = "all addresses, since " + told + " cannot be bound";
        listeners_ = bind_port(0);
    }
    bool listens = !listeners_.empty();
    for (const UniqueFd& fd : listeners_) listens = listens && ::listen(fd.get(), SOMAXCONN) == 0;
    if (!listens)
        return Error(ErrorCode::unavailable,
                     std::string("no port for the workers' store: ") + std::strerror(errno));
    port_ = port_of(listeners_.front().get());
    return port_;
}

std::vector<UniqueFd> MasterPort::take(std::uint16_t port) {
    if (port != port_ || port_ == 0) return {};
    // The neighbours are released at the last moment, just before the workers start.
    port_ = 0;
    for (UniqueFd& neighbour : neighbours_) neighbour.reset();
    return std::exchange(listeners_, {});
}

}  // namespace ddprun::agent
