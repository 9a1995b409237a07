// Addresses in a form that can be compared. Pure.
#pragma once

#include <boost/asio/ip/address.hpp>

namespace ddprun::store {

// Mapped IPv4 as IPv4, link-local IPv6 without its interface: that is part of the address on this
// host only, so it cannot be compared between hosts.
inline boost::asio::ip::address plain_address(const boost::asio::ip::address& address) {
    if (!address.is_v6()) return address;
    boost::asio::ip::address_v6 v6 = address.to_v6();
    if (v6.is_v4_mapped()) return boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, v6);
    v6.scope_id(0);
    return v6;
}

}  // namespace ddprun::store
