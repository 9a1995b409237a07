// What a kernel tells of one end of a TCP connection, and whose that is; read from the text of
// /proc/net/tcp or /proc/net/tcp6. It reads what it is given, and asks nobody.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <istream>
#include <optional>
#include <utility>
#include <vector>

#include "proto/socket_owner.h"

namespace ddprun::store {

// The ends of a connection: the peer's, and the store's.
using Ends = std::pair<boost::asio::ip::tcp::endpoint, boost::asio::ip::tcp::endpoint>;

struct FoundSocket {
    std::uint32_t uid = 0;
    std::uint64_t inode = 0;
    int state = 0;  // as in netinet/tcp.h
};

// The kernel gives an end that its process has closed to user 0 (since Linux 6.17 it keeps the user
// until the other side has confirmed the end), and what such a process has sent can still be read
// from our end. If root counted there, everybody could write as root. A socket that listens, or is
// about to connect, is not the connection: the store has accepted that one. `user`: whose sockets
// are ours, besides root's.
SocketOwner owner_of(const FoundSocket& socket, std::uint32_t user);

// The bytes of an address in the order of the network; IPv4 has four.
void put_address(const boost::asio::ip::address& address, std::uint32_t (&into)[4]);

struct TableRead {
    std::vector<std::optional<SocketOwner>> owners;  // nothing: it is not in the part that was read
    bool whole = false;
};

// The owners of all these connections. The text is read once, and no more than `most` lines of it.
TableRead read_socket_table(std::istream& table, const std::vector<Ends>& all, std::uint32_t user,
                            std::size_t most);

}  // namespace ddprun::store
