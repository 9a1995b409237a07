// Whose an end of a TCP connection on this host is. TCP itself does not say; the kernel's socket
// diagnostics do (sock_diag(7), a question of some microseconds), and /proc/net/tcp where they are
// not there.
//
// - A socket that is bound to an interface (SO_BINDTODEVICE, which everybody may; link-local IPv6)
//   is found only by a question that names the interface. So whatever is not found is asked for
//   with each one, up to kMostInterfaces.
// - "There is no such socket" and "there are no diagnostics of TCP" are one and the same answer.
//   Until the diagnostics have found something, the table is read, too; also after any error.
// - The table is read once for all questions, and no more than kMostLines of it: that takes 0.2 s.
// - What an error leaves open is `failed`, never `unknown`: nobody is let in by it.
//
// Thread: that of its owner. Nothing waits for anything but the kernel.
#pragma once

#include <sys/types.h>

#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "base/system/unique_fd.h"
#include "store/door/socket_table.h"

namespace ddprun::store {

class SocketUsers {
  public:
    using Endpoint = boost::asio::ip::tcp::endpoint;

    static constexpr std::size_t kMostInterfaces = 64;
    static constexpr std::size_t kMostLines = 100'000;  // of each table

    // `user`: whose sockets are ours, besides root's.
    explicit SocketUsers(uid_t user);

    // Whether the address is one of this host, as of the first question about one that is not a
    // loopback address.
    bool is_here(const boost::asio::ip::address& address);

    // Whose the socket of this host is that has the local address `theirs` and is connected to
    // `ours`. An IPv4 address mapped into IPv6 counts as IPv4.
    SocketOwner owner(const Endpoint& theirs, const Endpoint& ours);
    // The same for many connections.
    std::vector<SocketOwner> owners(const std::vector<Ends>& all);

  private:
    SocketOwner ask(const Ends& ends, std::vector<unsigned>& interfaces);
    SocketOwner ask_kernel(const Ends& ends, unsigned interface);
    void open_diagnostics();

    uid_t user_;
    UniqueFd diagnostics_;        // -1: there are none, for the reason in without_
    int without_ = 0;             // errno
    bool has_found_ = false;      // the diagnostics: what they do not find is not there
    std::uint32_t question_ = 0;  // number of the newest
    std::optional<std::set<boost::asio::ip::address>> here_;
};

// What a message of the diagnostics says: not_here if there is no such socket or no diagnostics of
// TCP, unknown if this process may not ask, failed if something went wrong. Pure.
SocketOwner read_diagnosis(std::string_view message, uid_t user);

}  // namespace ddprun::store
