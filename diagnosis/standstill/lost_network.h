// Between which two hosts the network is lost, from the connections of one node's workers. Pure.
//
// TCP sends again what is not acknowledged, after 0.2 s at first and then after twice as long each
// time. What has been sent three times again has been lost for 1.4 s or more, and the other end is
// neither slow nor stopped: then the kernel there would still acknowledge it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "diagnosis/stacks/tcp_sockets.h"

namespace ddprun::agent {

// The two ends of a connection, as hashes of their addresses; 0 and 0: none is lost. An end that is
// a worker of this node has a hash of its own, since the others of this node may well be reached.
struct LostConnection {
    std::uint32_t from = 0, to = 0;
    bool operator==(const LostConnection&) const = default;
};

// `sockets`: those of each worker. The answer has one entry for each.
std::vector<LostConnection> lost_connections(const std::vector<std::vector<TcpSocket>>& sockets);

// FNV-1a, so that all nodes come to the same number. Never 0.
std::uint32_t hash_of(std::string_view text);

}  // namespace ddprun::agent
