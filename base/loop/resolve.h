// Resolves host names without NSS, which a static binary cannot load. Order: a literal address,
// /etc/hosts (aliases included), "localhost", then the program `getent ahosts NAME`, which asks the
// system's C library. For this host's own name the fallback is loopback.
//
// Thread: the loop's. Possible errors: not_found (nobody knows the name; the sentence has getent's
// exit code), timed_out, unavailable (getent cannot be started), malformed (not a host name).
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

// Answers within `limit`. Each address is listed once, in the order of the source.
boost::asio::awaitable<Result<Addresses>> resolve(std::string host, Duration limit);

// As above, with a callback. It runs on the loop, never from within this call.
void resolve(boost::asio::io_context& loop, std::string host, Duration limit,
             std::function<void(Result<Addresses>)> done);

// The addresses of a name in the text of a hosts file. Case does not matter. Pure.
Addresses find_in_hosts(std::string_view text, std::string_view name);

// The addresses in the output of `getent ahosts`, each once. Pure.
Addresses parse_ahosts(std::string_view text);

}  // namespace ddprun
