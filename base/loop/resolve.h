// Host name → addresses without NSS, which a static binary does not have: literal addresses, this
// host's own name and "localhost", /etc/hosts (aliases too), and for all else a child `getent
// ahosts NAME` of the system's own C library, waited for on the loop.
//
// Thread: the loop's. Errors: not_found (nobody knows the name; the sentence has what getent said
// by its exit code), timed_out, unavailable (getent cannot be started), malformed (not a host
// name).
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/time.h"

namespace ddprun {

using Addresses = std::vector<boost::asio::ip::address>;

// Within `limit`. No address is named twice; the order is that of the source.
boost::asio::awaitable<Result<Addresses>> resolve(std::string host, Duration limit);

// The same with a callback on the loop, never from within the call.
void resolve(boost::asio::io_context& loop, std::string host, Duration limit,
             std::function<void(Result<Addresses>)> done);

// What a hosts file (its text) says about a name; case does not matter. Pure.
Addresses find_in_hosts(std::string_view text, std::string_view name);

// The addresses in the output of `getent ahosts`. Pure.
Addresses parse_ahosts(std::string_view text);

}  // namespace ddprun
