// One node's place in a generation: everything that the leader tells this node about it. The node
// computes the places of its workers from it (agent/workers/worker_env.h). But for the node with
// the store the place does not name the other members, so its size is the same with two nodes and
// with ten thousand. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/model/model.h"

namespace ddprun::rendezvous {

// The place of one of several nodes that share a host (node_name.h).
struct HostPlace {
    int rank = 0;              // of the host, ordered by the lowest rank on it
    int hosts = 1;             // number of hosts with members
    int first_local_rank = 0;  // local rank of this node's first worker on the host
    int workers = 1;           // on this host
    bool equal = true;         // whether every host has this number of workers
    bool operator==(const HostPlace&) const = default;
};

// A member, for the node with the workers' store.
struct StoreCaller {
    Peer peer;                           // where to call its service
    std::vector<std::string> addresses;  // from which its workers may connect
    bool operator==(const StoreCaller&) const = default;
};

struct NodePlace {
    Generation generation = kNoGeneration;
    int node_rank = 0;
    int nodes = 1;            // number of members
    int slots = 1;            // workers of this node
    bool equal_slots = true;  // whether every member has this number of slots
    int rank_offset = 0;
    int world_size = 1;
    int role_rank_offset = 0;  // ranks counted among the nodes of this node's role
    int role_world_size = 1;
    std::string master_address;
    std::uint16_t master_port = 0;  // of the store
    int max_restarts = 0;           // TORCHELASTIC_MAX_RESTARTS of the workers
    bool cold = false;              // no worker may be forked from a server
    // All members in the order of their ranks. Only the node with the store admits connections, so
    // only its place has them.
    std::vector<StoreCaller> callers = {};
    std::optional<HostPlace> shared = {};  // empty: each node is a host of its own

    bool has_store() const { return node_rank == 0; }
    // The host as the workers see it: with one node per host, the node itself.
    HostPlace host() const {
        return shared.value_or(HostPlace{node_rank, nodes, 0, slots, equal_slots});
    }
    bool operator==(const NodePlace&) const = default;
};

// The place of every member.
std::map<NodeId, NodePlace> places_of(const Assignment& assignment);

}  // namespace ddprun::rendezvous
