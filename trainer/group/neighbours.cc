// Each rank listens, writes where to the store, connects to the next rank, and is connected to.
#include "trainer/group/neighbours.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/system/random_bytes.h"
#include "trainer/worker/local_address.h"

namespace ddprun::trainer {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kPlace[] = "group/neighbours/";  // + rank: address, port and password
constexpr std::size_t kPassword = 16;           // bytes; another program may connect by mistake
constexpr char kLeft = 'l', kGaveUp = 'g';

Error problem(const std::string& what) {
    return Error(ErrorCode::unavailable, what + ": " + std::strerror(errno));
}

int milliseconds_until(Clock::time_point deadline) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    return static_cast<int>(std::max<long>(left.count(), 1));
}

// Whether the descriptor becomes ready before the deadline.
bool ready(int fd, short events, Clock::time_point deadline) {
    pollfd wanted{fd, events, 0};
    return poll(&wanted, 1, milliseconds_until(deadline)) == 1;
}

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;
Addresses resolve(const std::string& host, const std::string& port) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    addrinfo* list = nullptr;
    if (getaddrinfo(host.c_str(), port.c_str(), &hints, &list)) list = nullptr;
    return Addresses(list, freeaddrinfo);
}

// Where a rank can be reached. In the store: "10.0.0.7 40123 " and the password.
struct Place {
    std::string host, port, password;

    std::string text() const { return host + " " + port + " " + password; }
    static Place of(const std::string& text) {
        const auto first = text.find(' '), second = text.find(' ', first + 1);
        if (second == std::string::npos) return {};
        return {text.substr(0, first), text.substr(first + 1, second - first - 1),
                text.substr(second + 1)};
    }
};

Result<UniqueFd> listen_at(const std::string& host, Place& place) {
    const auto address = resolve(host, "0");
    if (!address) return Error(ErrorCode::unavailable, "the address " + host + " is none");
    UniqueFd fd(socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_storage local{};
    socklen_t size = sizeof local;
    if (!fd || bind(fd.get(), address->ai_addr, address->ai_addrlen) || listen(fd.get(), 16) ||
        getsockname(fd.get(), reinterpret_cast<sockaddr*>(&local), &size))
        return problem("cannot listen on " + host);
    char port[NI_MAXSERV] = "";
    getnameinfo(reinterpret_cast<sockaddr*>(&local), size, nullptr, 0, port, sizeof port,
                NI_NUMERICSERV);
    place = {host, port, random_bytes(kPassword)};
    return fd;
}

// A dead host answers no probe: after about 3 seconds the connection ends.
void probe(int fd) {
    const int on = 1, idle = 1, between = 1, times = 2;
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &between, sizeof between);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof times);
}

Result<UniqueFd> connect_to(const Place& place, Clock::time_point deadline) {
    const auto address = resolve(place.host, place.port);
    if (!address) return Error(ErrorCode::malformed, "the store has no address of it");
    UniqueFd fd(socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd) return problem("no socket");
    if (::connect(fd.get(), address->ai_addr, address->ai_addrlen) && errno != EINPROGRESS)
        return problem("cannot connect to " + place.host);
    int failed = 0;
    socklen_t size = sizeof failed;
    if (!ready(fd.get(), POLLOUT, deadline))
        errno = ETIMEDOUT;
    else if (getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &failed, &size) || failed)
        errno = failed;
    else if (send(fd.get(), place.password.data(), kPassword, MSG_NOSIGNAL) ==
             static_cast<ssize_t>(kPassword))
        return fd;
    return problem("cannot connect to " + place.host + " port " + place.port);
}

// Waits for the rank that knows the password. Others are turned away.
UniqueFd accept_from(int listener, const std::string& password, Clock::time_point deadline) {
    while (ready(listener, POLLIN, deadline)) {
        UniqueFd fd(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        const auto patience = std::min(deadline, Clock::now() + std::chrono::seconds(5));
        std::array<char, kPassword> said{};
        std::size_t size = 0;
        while (fd && size < said.size() && ready(fd.get(), POLLIN, patience)) {
            const auto got = recv(fd.get(), said.data() + size, said.size() - size, 0);
            if (got <= 0) break;
            size += static_cast<std::size_t>(got);
        }
        if (size == said.size() && std::equal(said.begin(), said.end(), password.begin()))
            return fd;
        if (Clock::now() > deadline) break;
    }
    return {};
}

Error no_neighbour(int rank, const Error& reason) {
    return Error(reason.code(), "rank " + std::to_string(rank) +
                                    " did not connect to its neighbour: " + reason.sentence());
}

}  // namespace

Result<Neighbours> Neighbours::connect(const Context& context, Store& store, Time deadline) {
    Neighbours made;
    if (context.world_size == 1) return made;
    auto host = local_address(context);
    if (!host) return host.error();
    Place here;
    auto listener = listen_at(*host, here);
    if (!listener) return listener.error();
    const int rank = context.rank.value, size = context.world_size;
    const int next = (rank + 1) % size, last = (rank + size - 1) % size;
    if (auto done = store.set(kPlace + std::to_string(rank), here.text()); !done)
        return done.error();
    auto there = store.get(kPlace + std::to_string(next),
                           std::chrono::milliseconds(milliseconds_until(deadline)));
    if (!there) return no_neighbour(next, there.error());
    auto forth = connect_to(Place::of(*there), deadline);
    if (!forth) return no_neighbour(next, forth.error());
    UniqueFd back = accept_from(listener->get(), here.password, deadline);
    if (!back) return no_neighbour(last, Error(ErrorCode::timed_out, "the time for it is over"));
    made.links_.push_back({std::move(*forth), next});
    made.links_.push_back({std::move(back), last});
    for (const Link& link : made.links_) probe(link.fd.get());
    return made;
}

std::vector<int> Neighbours::descriptors() const {
    std::vector<int> all;
    for (const Link& link : links_)
        if (!link.left) all.push_back(link.fd.get());
    return all;
}

int Neighbours::look() {
    int gave_up = -1;
    for (Link& link : links_) {
        if (link.left) continue;
        char word = 0;
        const auto got = recv(link.fd.get(), &word, 1, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        link.left = true;
        if (got == 1 && word == kGaveUp)
            gave_up = link.rank;
        else if (got != 1 || word != kLeft)
            return link.rank;
    }
    return gave_up;
}

void Neighbours::leave() {
    for (const Link& link : links_) (void)send(link.fd.get(), &kLeft, 1, MSG_NOSIGNAL);
}

void Neighbours::give_up() const {
    for (const Link& link : links_) (void)send(link.fd.get(), &kGaveUp, 1, MSG_NOSIGNAL);
}

}  // namespace ddprun::trainer
