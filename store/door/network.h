// Networks as an operator writes them ("10.0.0.0/8", "fd00::/8", "192.0.2.7"), and which addresses
// are in one.
//
// IPv4 addresses are kept in the IPv6 form ::ffff:a.b.c.d, so an address is the same whether it
// came over an IPv4 or an IPv6 socket. Only addresses, never host names. Pure.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "base/error.h"

namespace ddprun::store {

using AddressBytes = std::array<unsigned char, 16>;

struct Network {
    AddressBytes address{};
    int prefix = 128;  // number of leading bits that count; for IPv4 96 more than written

    bool contains(const AddressBytes& other) const;
    bool operator==(const Network&) const = default;
};

// Text without a prefix length is one address. Possible errors: usage; the sentence does not repeat
// the text.
Result<Network> read_network(std::string_view text);

}  // namespace ddprun::store
