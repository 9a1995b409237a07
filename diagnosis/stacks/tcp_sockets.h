// The TCP connections of this machine, as the kernel's socket diagnostics tell them. It needs no
// right: the kernel tells everybody's.
//
// Source: sock_diag(7), linux/inet_diag.h.
// Thread: any. It takes some milliseconds on a machine with thousands of connections.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace ddprun::agent {

struct TcpSocket {
    bool listens = false;       // else it is connected, or about to be
    std::string local, remote;  // addresses as text
    std::uint16_t local_port = 0, remote_port = 0;
    std::uint32_t unread = 0;          // bytes that have come, and that the process has not read
    std::uint32_t unacknowledged = 0;  // bytes that it has sent, and that are not acknowledged
    int sent_again = 0;                // how often the oldest of these have been sent again
    bool operator==(const TcpSocket&) const = default;
};
using TcpSockets = std::map<std::uint64_t, TcpSocket>;  // by inode

// Empty where the kernel does not tell them.
TcpSockets tcp_sockets();

// Takes them from a part of the kernel's answer. Returns false when it was the last part, or when
// it makes no sense.
bool add_tcp_sockets(std::string_view answer, TcpSockets& sockets);

}  // namespace ddprun::agent
