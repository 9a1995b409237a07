// Reads /proc/self/fd before and after.
#include "trainer/torch/new_sockets.h"

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace ddprun::trainer {
namespace {

// The bytes of an address, enough to compare it, in one length. A socket that is not of the
// internet has none.
constexpr std::size_t kEndBytes = sizeof(sockaddr_in6);
std::string end_of(const sockaddr_storage& address) {
    if (address.ss_family != AF_INET && address.ss_family != AF_INET6) return "";
    return {reinterpret_cast<const char*>(&address), kEndBytes};
}

// The port lies at the same place in both kinds of address.
std::uint16_t port_of(const sockaddr_storage& address) {
    return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace

NewSockets::NewSockets() : links_(connected()) {}

NewSockets::~NewSockets() {
    for (const auto& link : links_)
        if (found_) ::close(link.fd);
}

std::vector<NewSockets::Link> NewSockets::connected() {
    std::vector<Link> found;
    DIR* folder = opendir("/proc/self/fd");
    if (!folder) return found;
    while (dirent* entry = readdir(folder)) {
        if (entry->d_name[0] == '.') continue;
        const int fd = std::atoi(entry->d_name);
        sockaddr_storage local{}, peer{};
        socklen_t local_size = sizeof local, peer_size = sizeof peer;
        // A descriptor that is no socket fails here, a listening socket at getpeername.
        if (getsockname(fd, reinterpret_cast<sockaddr*>(&local), &local_size)) continue;
        if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size)) continue;
        Link link{fd, end_of(local), end_of(peer), port_of(peer)};
        if (!link.peer.empty()) found.push_back(std::move(link));
    }
    closedir(folder);
    return found;
}

std::size_t NewSockets::find(std::uint16_t except_port) {
    std::vector<Link> fresh;
    for (auto& link : connected()) {
        auto same = [&](const Link& old) {
            return old.local == link.local && old.peer == link.peer;
        };
        if (link.peer_port == except_port || std::any_of(links_.begin(), links_.end(), same))
            continue;
        // Gloo closes its descriptor when a connection fails, and the number may then belong to
        // another file. A duplicate stays valid.
        link.fd = fcntl(link.fd, F_DUPFD_CLOEXEC, 0);
        if (link.fd >= 0) fresh.push_back(std::move(link));
    }
    links_ = std::move(fresh);
    found_ = true;
    return links_.size();
}

std::string NewSockets::ends() const {
    std::string all;
    for (const auto& link : links_) all += link.local;
    return all;
}

std::vector<int> NewSockets::links_to(const std::string& ends) const {
    std::vector<int> found;
    for (std::size_t at = 0; at + kEndBytes <= ends.size(); at += kEndBytes)
        for (const auto& link : links_)
            if (ends.compare(at, kEndBytes, link.peer) == 0) found.push_back(link.fd);
    return found;
}

// shutdown() and not close(): it takes effect on the connection itself, so Gloo's descriptor and
// the other rank see it.
void NewSockets::cut() const {
    for (const auto& link : links_)
        if (found_) ::shutdown(link.fd, SHUT_RDWR);
}

}  // namespace ddprun::trainer
