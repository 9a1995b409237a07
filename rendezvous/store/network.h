// Networks as an operator writes them ("10.0.0.0/8", "fd00::/8", "192.0.2.7"), and who is in one.
//
// IPv4 is kept as IPv6 has it (::ffff:a.b.c.d), so an address means the same whether it came over
// an IPv4 or an IPv6 socket. Addresses only, never names. Pure.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "base/error.h"

namespace ddprun::store {

using AddressBytes = std::array<unsigned char, 16>;

struct Network {
    AddressBytes address{};
    int prefix = 128;  // leading bits that count; of IPv4 96 more than written

    bool contains(const AddressBytes& other) const;
    bool operator==(const Network&) const = default;
};

// Without a prefix the network is that one address. Errors: usage, a sentence without the text.
Result<Network> read_network(std::string_view text);

}  // namespace ddprun::store
