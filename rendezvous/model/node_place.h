// One node's place in a generation: all that the node is told of it, and all that its workers' own
// places (agent/workers/worker_env.h) are made of. It does not name the other members, so that telling it
// costs the same in a world of two nodes and of ten thousand. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/model/model.h"

namespace ddprun::rendezvous {

// The place of one of several nodes that share a host (node_name.h).
struct HostPlace {
    int rank = 0;              // of the host, by the lowest rank on it
    int hosts = 1;             // that have members
    int first_local_rank = 0;  // of this node's workers, in the order of ranks
    int workers = 1;           // on this host
    bool equal = true;         // whether every host has so many
    bool operator==(const HostPlace&) const = default;
};

struct NodePlace {
    Generation generation = kNoGeneration;
    int node_rank = 0;
    int nodes = 1;            // that are members
    int slots = 1;            // workers of this node
    bool equal_slots = true;  // whether every member has so many
    int rank_offset = 0;
    int world_size = 1;
    int role_rank_offset = 0;  // ranks counted among the nodes of this node's role
    int role_world_size = 1;
    std::string master_address;
    std::uint16_t master_port = 0;  // of the store
    int max_restarts = 0;           // what workers are told
    // Where the members' workers may come from: each address once. Only the node with the store
    // admits anybody, so that only its place has them.
    std::vector<std::string> addresses = {};
    std::optional<HostPlace> shared = {};  // none: each node is a host of its own

    bool has_store() const { return node_rank == 0; }
    // As the workers see it.
    HostPlace host() const {
        return shared.value_or(HostPlace{node_rank, nodes, 0, slots, equal_slots});
    }
    bool operator==(const NodePlace&) const = default;
};

// The place of every member.
std::map<NodeId, NodePlace> places_of(const Assignment& assignment);

}  // namespace ddprun::rendezvous
