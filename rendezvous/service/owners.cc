// From the texts of the question to the kernel's words, and back.
#include "rendezvous/service/owners.h"

#include <unistd.h>

#include <utility>
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

SocketOwner as_said(const SocketUsers::Owner& owner) {
    switch (owner.kind) {
        case SocketUsers::Owner::Kind::user:
            if (owner.uid == 0 || owner.uid == ::geteuid()) return {Whose::ours, 0};
            return {Whose::other, owner.uid};
        case SocketUsers::Owner::Kind::gone:
            return {Whose::gone, 0};
        case SocketUsers::Owner::Kind::not_here:
            return {Whose::not_here, 0};
        case SocketUsers::Owner::Kind::unknown:
            break;
    }
    return {Whose::unknown, 0};
}

}  // namespace

Owners owners_of(const SocketUsers& users, const AskOwners& asked) {
    std::vector<SocketUsers::Ends> ends;
    for (const SocketEnds& socket : asked.sockets)
        ends.emplace_back(endpoint_of(socket.from, socket.from_port),
                          endpoint_of(socket.to, socket.to_port));
    Owners answer{asked.number, {}};
    for (const SocketUsers::Owner& owner : users.owners(ends))
        answer.owners.push_back(as_said(owner));
    return answer;
}

}  // namespace ddprun::rendezvous
