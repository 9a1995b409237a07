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

#include "base/system/random_bytes.h"

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
// the kernel gives ports to clients. Some sites give clients nearly all ports: then it is the last
// of these.
int last_port() {
    int low = 32'768;
    std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> low;
    constexpr int kHighest = 65'535 - 2;
    return low - 3 > kFirst ? std::min(low - 3, kHighest) : kHighest;
}

// Sockets that are bound and do not listen; none if the first place cannot be had. No places: all
// addresses. A host may have no IPv6.
std::vector<UniqueFd> bind_port(const std::vector<ip::address>& places, int port) {
    std::vector<UniqueFd> bound;
    bound.push_back(places.empty() ? bind_all(port) : bind_one(places.front(), port));
    if (!bound.front()) return {};
    port = port_of(bound.front().get());
    for (std::size_t i = 1; i < places.size(); ++i) {
        UniqueFd fd = bind_one(places[i], port);
        if (!fd && errno == EADDRINUSE) return {};
        if (fd) bound.push_back(std::move(fd));
    }
    return bound;
}

}  // namespace

MasterPort::Held MasterPort::choose_place(const std::string& told,
                                          const std::vector<std::string>& local) const {
    boost::system::error_code none;
    const ip::address address = ip::make_address(told, none);
    if (loopback_only_) return {told, "127.0.0.1 only", {ip::address_v4::loopback()}};
    if (none)
        return {told, "all addresses, since other hosts may take the name " + told +
                          " for another of them; an address instead (--local-addr, "
                          "--rdzv-endpoint) is listened on alone"};
    if (std::find(local.begin(), local.end(), told) == local.end())
        return {told, "all addresses, since " + told + " is none of this host"};
    std::vector<ip::address> places = {address, ip::address_v4::loopback(),
                                       ip::address_v6::loopback()};
    // Each once.
    places.erase(std::remove(places.begin() + 1, places.end(), address), places.end());
    return {told, told + " and loopback", std::move(places)};
}

void MasterPort::bind(Held& held) const {
    std::mt19937_64 random(random_number());
    const int last = last_port();
    for (int i = 0; i < kAttempts; ++i) {
        const int port = std::uniform_int_distribution(kFirst, last)(random);
        held.listeners = bind_port(held.places, port);
        if (held.listeners.empty()) continue;
        // Programs may bind these ports on all addresses, even if ours is bound to one only.
        held.neighbours[0] = bind_all(port + 1);
        held.neighbours[1] = bind_all(port + 2);
        if (held.neighbours[0] && held.neighbours[1]) return;
    }
    // If no three neighbouring ports are free, any port is better than none: only programs that use
    // MASTER_PORT+1 or +2 may then fail.
    held.listeners.clear();
    for (int i = 0; i < kAttempts && held.listeners.empty(); ++i)
        held.listeners = bind_port(held.places, 0);
    // The address may have gone since it was looked up.
    if (held.listeners.empty() && !held.places.empty() && !loopback_only_) {
        held.places.clear();
        held.where = "all addresses, since " + held.told + " cannot be bound";
        held.listeners = bind_port({}, 0);
    }
}

Result<std::uint16_t> MasterPort::offer(const std::string& told,
                                        const std::vector<std::string>& local) {
    // Each Join offers a port. The offer stays the same until a generation uses one.
    const auto known = std::ranges::find(held_, told, &Held::told);
    if (known != held_.end()) {
        where_ = known->where;
        return known->port;
    }
    Held held = choose_place(told, local);
    bind(held);
    bool listens = !held.listeners.empty();
    for (const UniqueFd& fd : held.listeners)
        listens = listens && ::listen(fd.get(), SOMAXCONN) == 0;
    if (!listens)
        return Error(ErrorCode::unavailable,
                     std::string("no port for the workers' store: ") + std::strerror(errno));
    held.port = port_of(held.listeners.front().get());
    where_ = held.where;
    held_.push_back(std::move(held));
    return held_.back().port;
}

std::vector<UniqueFd> MasterPort::take(std::uint16_t port) {
    const auto taken = std::ranges::find(held_, port, &Held::port);
    if (taken == held_.end()) return {};
    where_ = taken->where;
    // The neighbours are released at the last moment, just before the workers start.
    std::vector<UniqueFd> listeners = std::move(taken->listeners);
    held_.clear();
    return listeners;
}

}  // namespace ddprun::agent
