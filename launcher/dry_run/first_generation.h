// The first generation as it would be made if the nodes came as planned, and what may be otherwise
// when they really meet. Pure.
#pragma once

#include <string>

#include "launcher/dry_run/known.h"
#include "launcher/plan/job_input.h"
#include "launcher/plan/step_to_come.h"
#include "rendezvous/model/model.h"

namespace ddprun::launcher {

// Assumptions about the first generation that may turn out wrong. An empty text: nothing is in
// doubt.
struct Doubts {
    bool place = false;       // which nodes take part, or which of them is this one
    std::string workers;      // why the number of workers is not known yet
    std::string if_all_come;  // the condition, if fewer nodes may come
    std::string if_equal;     // the condition, if other nodes may have other numbers of workers
};
// `step` is null unless the plan is that of a step to come.
Doubts doubts_of(const Plan& plan, const StepToCome* step);

// The ranks come from assign_ranks(), which the leader of a real job calls.
rendezvous::Assignment first_generation(const JobInput& input, const rendezvous::NodeId& self);

// Ranks and sizes with their doubts. Rank 0 does not depend on how many workers the other nodes
// have, so the first node's ranks are certain.
struct Places {
    const rendezvous::Assignment& assignment;
    const Doubts& doubts;

    std::string no_place() const;  // why a node's place is unknown; empty: it is known
    std::string no_rank() const;
    Known<int> rank(const rendezvous::Member& member, int local_rank) const;
    std::string of_world() const;  // the condition on which sizes of the world hold
};

}  // namespace ddprun::launcher
