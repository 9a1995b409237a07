// Which user of this host owns an end of a TCP connection. TCP itself does not say; the kernel's socket diagnostics do (sock_diag(7), a question of some microseconds), and
// /proc/net/tcp where they are not there.
//
// Only the owner of an open socket counts. The kernel gives an end that its process has closed to
// user 0, and what such a process has sent can still be read from our end: everybody could write as
// root that way.
//
// Thread: that of its owner. Nothing waits for anything but the kernel.
#pragma once

#include <sys/types.h>

#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/system/unique_fd.h"

namespace ddprun::store {

class SocketUsers {
  public:
    using Endpoint = boost::asio::ip::tcp::endpoint;

    struct Owner {
        enum class Kind {
            user,      // `uid` has it open
            gone,      // no process has it open any more
            not_here,  // there is none in this network namespace
            unknown,   // this kernel does not tell
        };
        Kind kind = Kind::unknown;
        uid_t uid = 0;
    };

    SocketUsers();

    // Whether the address is one of this host, as of the time when this object was made.
    bool is_here(const boost::asio::ip::address& address) const;

    // Who owns the socket of this host with the local address `theirs` that is connected to `ours`.
    // An IPv4 address mapped into IPv6 counts as IPv4.
    Owner owner(const Endpoint& theirs, const Endpoint& ours) const;
    // The same for many connections, each theirs and ours.
    using Ends = std::pair<Endpoint, Endpoint>;
    std::vector<Owner> owners(const std::vector<Ends>& all) const;

  private:
    Endpoint with_scope(const Endpoint& theirs) const;

    UniqueFd diagnostics_;               // -1: there are none
    mutable bool has_answered_ = false;  // the diagnostics: what they do not know is not there
    // With the interface of link-local addresses, else 0.
    std::map<boost::asio::ip::address, std::uint32_t> here_;
};

// The same from a text in the form of /proc/net/tcp or /proc/net/tcp6. Nothing: it is not in it.
// Pure.
std::optional<SocketUsers::Owner> owner_in_table(std::string_view table,
                                                 const SocketUsers::Endpoint& theirs,
                                                 const SocketUsers::Endpoint& ours);

}  // namespace ddprun::store
