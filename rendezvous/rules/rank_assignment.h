// Members, slots and the last assignment → node order, rank offsets, world size. Pure free
// functions.
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

// At most max_nodes of the candidates with their places. The first time nodes stand by node rank,
// else in the order of `order`, else by natural order of names. Later a node keeps its node rank; a
// new process on the same node, else any replacement, takes the place that became free; when the
// world shrinks the order is kept. Who was a member before is preferred to who was not.
// Precondition: there is at least one candidate.
std::vector<Member> assign_ranks(const std::vector<Candidate>& candidates,
                                 const std::vector<Member>& previous,
                                 const std::vector<std::string>& order, int max_nodes);

// Where tasks are nodes and more of them are to come than may take part: those of hosts that are
// here with all their tasks of `order`, so that a host is a member or a spare as a whole.
std::vector<Candidate> of_whole_hosts(std::vector<Candidate> candidates,
                                      const std::vector<std::string>& order, int max_nodes);

// Workers of all members, of which there is at least one.
int world_size(const std::vector<Member>& members);

}  // namespace ddprun::rendezvous
