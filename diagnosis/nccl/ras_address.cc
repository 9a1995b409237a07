// Splits an address and its port.
#include "diagnosis/nccl/ras_address.h"

#include <arpa/inet.h>

#include <charconv>
#include <cstdint>
#include <cstring>

namespace ddprun::agent {

std::optional<RasAddress> RasAddress::parse(const std::string& text) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string::npos) return std::nullopt;
    std::string host = text.substr(0, colon);
    std::uint16_t port = 0;
    const char* end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data() + colon + 1, end, port);
    if (error != std::errc() || stopped != end || port == 0) return std::nullopt;
    if (host == "localhost") host = "127.0.0.1";
    const bool v6 = host.starts_with('[') && host.ends_with(']');
    if (v6) host = host.substr(1, host.size() - 2);
    RasAddress parsed{text};
    if (v6) {
        sockaddr_in6 address{};
        address.sin6_family = AF_INET6;
        address.sin6_port = htons(port);
        if (::inet_pton(AF_INET6, host.c_str(), &address.sin6_addr) != 1) return std::nullopt;
        std::memcpy(&parsed.address, &address, sizeof address);
        return parsed;
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    if (::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) return std::nullopt;
    std::memcpy(&parsed.address, &address, sizeof address);
    return parsed;
}

}  // namespace ddprun::agent
