// Computes the place of every member from an assignment (node_place.h).
#include "rendezvous/model/node_place.h"

#include <algorithm>
#include <utility>

#include "rendezvous/model/node_name.h"

namespace ddprun::rendezvous {
namespace {

// With --task-per-worker several nodes share a host. Workers see one local world per host, so local
// ranks continue across its nodes, in the order of ranks.
void share_hosts(const Assignment& assignment, std::map<NodeId, NodePlace>& places) {
    if (std::ranges::none_of(assignment.members, is_task_node,
                             [](const Member& member) { return member.node.name; }))
        return;
    std::map<std::string, HostPlace> hosts;
    for (const Member& member : assignment.members) {
        const int next = static_cast<int>(hosts.size());
        auto [host, first] =
            hosts.try_emplace(host_of(member.node.name), HostPlace{.rank = next, .workers = 0});
        places[member.node].shared = HostPlace{.first_local_rank = host->second.workers};
        host->second.workers += member.offer.slots;
    }
    const int workers = hosts.begin()->second.workers;
    const bool equal = std::ranges::all_of(
        hosts, [&](const auto& host) { return host.second.workers == workers; });
    for (auto& [node, place] : places) {
        const HostPlace& host = hosts[host_of(node.name)];
        place.shared->rank = host.rank;
        place.shared->hosts = static_cast<int>(hosts.size());
        place.shared->workers = host.workers;
        place.shared->equal = equal;
    }
}

}  // namespace

std::map<NodeId, NodePlace> places_of(const Assignment& assignment) {
    std::map<NodeId, NodePlace> places;
    // torchrun counts ranks within each role too. Members come in the order of ranks, so the sizes
    // so far are the offsets.
    std::map<std::string, int> role_sizes;  // in workers, of the members so far
    std::vector<StoreCaller> callers;
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
            .max_restarts = assignment.max_restarts,
            .cold = assignment.cold};
        callers.push_back({{member.node, offer.address, offer.service_port}, offer.addresses});
    }
    for (const Member& member : assignment.members) {
        NodePlace& place = places[member.node];
        place.role_world_size = role_sizes[member.offer.role];
        if (place.has_store()) place.callers = callers;
    }
    share_hosts(assignment, places);
    return places;
}

}  // namespace ddprun::rendezvous
