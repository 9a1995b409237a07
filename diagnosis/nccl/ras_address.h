// Where RAS listens for clients, as NCCL_RAS_ADDR spells it.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <optional>
#include <string>

namespace ddprun::agent {

struct RasAddress {
    std::string text;
    sockaddr_storage address{};

    // Nothing where it is no address with a port. A name is one of another host, or localhost.
    static std::optional<RasAddress> parse(const std::string& text);

    int family() const { return address.ss_family; }
    const sockaddr* data() const { return reinterpret_cast<const sockaddr*>(&address); }
    socklen_t size() const {
        return family() == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    }
};

// Where it listens when nobody says otherwise.
inline constexpr const char* kRasByDefault = "127.0.0.1:28028";

}  // namespace ddprun::agent
