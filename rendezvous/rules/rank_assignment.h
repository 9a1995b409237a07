// Turns candidates and the last assignment into the order of nodes, rank offsets and the world size
// (PROTOCOL.md, rule 19). Pure free functions.
#pragma once

#include <string>
#include <vector>

#include "rendezvous/model/model.h"

namespace ddprun::rendezvous {

struct Candidate {
    NodeId node;
    Offer offer;
    bool operator==(const Candidate&) const = default;
};

// "n2" before "n10": digits compare as numbers.
bool natural_less(const std::string& a, const std::string& b);

// Chooses at most max_nodes candidates and gives them their places. The first generation orders
// nodes by node rank, then by `order`, then by natural order of names. Later a node keeps its node
// rank. A free place goes to a new process on the same node, else to any candidate. A smaller world
// keeps the order. Earlier members have priority over new nodes. Precondition: there is at least
// one candidate.
std::vector<Member> assign_ranks(const std::vector<Candidate>& candidates,
                                 const std::vector<Member>& previous,
                                 const std::vector<std::string>& order, int max_nodes);

// For --task-per-worker with more expected nodes than max_nodes: keeps only hosts all of whose
// tasks are here. A host is then a member or a spare as a whole.
std::vector<Candidate> of_whole_hosts(std::vector<Candidate> candidates,
                                      const std::vector<std::string>& order, int max_nodes);

// The number of workers of all members. Precondition: there is at least one member.
int world_size(const std::vector<Member>& members);

}  // namespace ddprun::rendezvous
