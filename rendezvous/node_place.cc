#include "rendezvous/node_place.h"

#include <algorithm>
#include <set>
#include <utility>

namespace ddprun::rendezvous {

std::map<NodeId, NodePlace> places_of(const Assignment& assignment) {
    std::map<NodeId, NodePlace> places;
    std::map<std::string, int> role_sizes;  // in workers, of the members so far
    std::set<std::string> addresses;
    int node_rank = 0;
    const bool equal_slots = std::ranges::all_of(assignment.members, [&](const Member& member) {
        return member.offer.slots == assignment.master().slots;
    });
    for (const Member& member : assignment.members) {
        const Offer& offer = member.offer;
        int& role_size = role_sizes[offer.role];
        places[member.node] = {
            .generation = assignment.generation,
            .node_rank = node_rank++,
            .nodes = static_cast<int>(assignment.members.size()),
            .slots = offer.slots,
            .equal_slots = equal_slots,
            .rank_offset = member.rank_offset,
            .world_size = assignment.world_size,
            .role_rank_offset = std::exchange(role_size, role_size + offer.slots),
            .role_world_size = 0,  // known after the last one
            .master_address = assignment.master().address,
            .master_port = assignment.master().store_port,
            .max_restarts = assignment.max_restarts};
        addresses.insert(offer.addresses.begin(), offer.addresses.end());
    }
    for (const Member& member : assignment.members) {
        NodePlace& place = places[member.node];
        place.role_world_size = role_sizes[member.offer.role];
        if (place.has_store()) place.addresses.assign(addresses.begin(), addresses.end());
    }
    return places;
}

}  // namespace ddprun::rendezvous
