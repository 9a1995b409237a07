// Finds connections on which nothing is acknowledged.
#include "diagnosis/standstill/lost_network.h"

#include <algorithm>
#include <string>

namespace ddprun::agent {
namespace {

constexpr int kSentAgain = 3;

bool is_lost(const TcpSocket& socket) {
    return socket.unacknowledged > 0 && socket.sent_again >= kSentAgain;
}

bool is_other_end(const TcpSocket& one, const TcpSocket& other) {
    return one.local == other.remote && one.local_port == other.remote_port &&
           one.remote == other.local && one.remote_port == other.local_port;
}

std::uint32_t worker_at(const std::string& address, std::size_t worker) {
    return hash_of(address + "#" + std::to_string(worker));
}

}  // namespace

std::uint32_t hash_of(std::string_view text) {
    std::uint32_t hash = 2166136261U;
    for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619U;
    return hash == 0 ? 1 : hash;
}

std::vector<LostConnection> lost_connections(const std::vector<std::vector<TcpSocket>>& sockets) {
    std::vector<LostConnection> lost(sockets.size());
    for (std::size_t i = 0; i < sockets.size(); ++i) {
        const auto socket = std::ranges::find_if(sockets[i], is_lost);
        if (socket == sockets[i].end()) continue;
        const auto peer = std::ranges::find_if(sockets, [&](const std::vector<TcpSocket>& theirs) {
            return std::ranges::any_of(
                theirs, [&](const TcpSocket& each) { return is_other_end(each, *socket); });
        });
        lost[i] = {hash_of(socket->local), hash_of(socket->remote)};
        if (peer == sockets.end()) continue;
        lost[i] = {worker_at(socket->local, i),
                   worker_at(socket->remote, static_cast<std::size_t>(peer - sockets.begin()))};
    }
    return lost;
}

}  // namespace ddprun::agent
