// Asks the routing table which local address leads to the master.
#include "trainer/worker/local_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace ddprun::trainer {
namespace {

// NI_NUMERICHOST: digits, without a question to a name server.
std::string numeric(const sockaddr* address, socklen_t size) {
    char text[NI_MAXHOST] = "";
    if (getnameinfo(address, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST)) return "";
    return text;
}

// Connecting a UDP socket sends nothing. It only makes the kernel choose a route and a local
// address.
std::string way_to(const addrinfo& target) {
    const int fd = socket(target.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return "";
    std::string found;
    sockaddr_storage local{};
    socklen_t size = sizeof local;
    if (!connect(fd, target.ai_addr, target.ai_addrlen) &&
        !getsockname(fd, reinterpret_cast<sockaddr*>(&local), &size)) {
        found = numeric(reinterpret_cast<sockaddr*>(&local), size);
    }
    close(fd);
    return found;
}

bool is_loopback(const std::string& address) {
    return address.starts_with("127.") || address == "::1";
}

// IPv4 only. The order is that of getifaddrs().
std::string first_interface() {
    ifaddrs* list = nullptr;
    if (getifaddrs(&list)) return "";
    std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, freeifaddrs);
    for (auto* entry = list; entry; entry = entry->ifa_next) {
        const bool usable = (entry->ifa_flags & IFF_UP) && !(entry->ifa_flags & IFF_LOOPBACK);
        if (!usable || !entry->ifa_addr || entry->ifa_addr->sa_family != AF_INET) continue;
        return numeric(entry->ifa_addr, sizeof(sockaddr_in));
    }
    return "";
}

}  // namespace

Result<std::string> local_address(const Context& context) {
    addrinfo hints{};
    // One entry for each address. Without a type, each address comes once for each type of socket.
    hints.ai_socktype = SOCK_DGRAM;
    addrinfo* list = nullptr;
    const std::string port = std::to_string(context.master_port);
    if (int problem = getaddrinfo(context.master_addr.c_str(), port.c_str(), &hints, &list)) {
        return Error(ErrorCode::unavailable, "MASTER_ADDR=\"" + context.master_addr +
                                                 "\" cannot be resolved: " + gai_strerror(problem));
    }
    std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, freeaddrinfo);
    // A name may have IPv6 and IPv4 addresses, and only one of them may be reachable.
    for (auto* target = list; target; target = target->ai_next) {
        std::string found = way_to(*target);
        if (found.empty()) continue;
        // Some ranks are on other nodes, for which this loopback address leads to themselves.
        if (is_loopback(found) && context.local_world_size < context.world_size) {
            std::string other = first_interface();
            if (!other.empty()) return other;
        }
        return found;
    }
    return Error(ErrorCode::unavailable,
                 "no route from here to MASTER_ADDR=\"" + context.master_addr + "\"");
}

}  // namespace ddprun::trainer
