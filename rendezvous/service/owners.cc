// From the texts of the question to the kernel's words.
#include "rendezvous/service/owners.h"

#include <vector>

namespace ddprun::rendezvous {
namespace {

namespace ip = boost::asio::ip;
using store::SocketUsers;

// A text that is no address names no socket of ours.
SocketUsers::Endpoint endpoint_of(const std::string& address, std::uint16_t port) {
    boost::system::error_code error;
    return {ip::make_address(address, error), port};
}

}  // namespace

Owners owners_of(SocketUsers& users, const AskOwners& asked) {
    std::vector<store::Ends> ends;
    for (const SocketEnds& socket : asked.sockets)
        ends.emplace_back(endpoint_of(socket.from, socket.from_port),
                          endpoint_of(socket.to, socket.to_port));
    return {asked.number, users.owners(ends)};
}

}  // namespace ddprun::rendezvous
