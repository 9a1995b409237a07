// Reads networks and compares addresses bit by bit.
#include "store/door/network.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

namespace ddprun::store {
namespace {

constexpr int kMappedBits = 96;  // length of the prefix ::ffff:0:0/96 of IPv4 addresses

// A byte with its first `bits` bits set; `bits` may be negative or above 8.
unsigned char mask(int bits) {
    return static_cast<unsigned char>(0xFF00 >> std::clamp(bits, 0, 8));
}

}  // namespace

bool Network::contains(const AddressBytes& other) const {
    for (int i = 0; i < 16; ++i) {
        if ((address[i] ^ other[i]) & mask(prefix - 8 * i)) return false;
    }
    return true;
}

Result<Network> read_network(std::string_view text) {
    const std::size_t slash = text.find('/');
    const std::string address(text.substr(0, slash));
    Network network;
    int first_bit = 0;
    if (::inet_pton(AF_INET, address.c_str(), network.address.data() + 12) == 1) {
        network.address[10] = network.address[11] = 0xFF;
        first_bit = kMappedBits;
    } else if (::inet_pton(AF_INET6, address.c_str(), network.address.data()) != 1) {
        return usage_error(
            "not an address or network; give e.g. 10.0.0.0/8, fd00::/8 or 192.0.2.7");
    }
    if (slash == std::string_view::npos) return network;
    const std::string_view bits = text.substr(slash + 1);
    const auto read = std::from_chars(bits.data(), bits.data() + bits.size(), network.prefix);
    network.prefix += first_bit;
    const bool number = read.ec == std::errc{} && read.ptr == bits.data() + bits.size();
    if (!number || network.prefix < first_bit || network.prefix > 128)
        return usage_error("no prefix length behind the slash; give 0 to " +
                           std::to_string(128 - first_bit));
    for (int i = 0; i < 16; ++i) {
        // 10.0.0.7/8 is most likely a mistake: either the address or the whole network was meant.
        if (network.address[i] & ~mask(network.prefix - 8 * i) & 0xFF)
            return usage_error("the address has bits behind its prefix; is it " + address +
                               " or a network?");
    }
    return network;
}

}  // namespace ddprun::store
