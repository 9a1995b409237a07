// The order of the nodes that may lead next (successors.h).
#include "rendezvous/parts/successors.h"

#include "rendezvous/rules/succession.h"

namespace ddprun::rendezvous {

std::vector<Peer> Successors::order(std::span<const Member> members, const Peer& self,
                                    const Roster& roster) const {
    std::vector<Peer> others{self};
    for (const NodeId& id : arrivals_) {
        // The order goes to every node, so its length is bounded.
        if (members.size() + others.size() >= kOrderFirst) break;
        const NodeState* node = roster.find(id);
        if (id != self.node && node && node->connected())
            others.push_back({id, node->offer.address, node->offer.service_port});
    }
    return order_of(members, others);
}

std::optional<Peer> Successors::next(const std::vector<Peer>& order, const NodeId& self,
                                     const Roster& roster) {
    for (const Peer& peer : order) {
        const NodeState* node = roster.find(peer.node);
        if (peer.node != self && node && node->connected()) return peer;
    }
    return std::nullopt;
}

bool Successors::stands_by(const std::optional<Peer>& peer) {
    if (peer == standby_) return false;
    standby_ = peer;
    return true;
}

}  // namespace ddprun::rendezvous
