// When a generation counts as hung, and which workers are the slowest then. A generation hangs when
// no rank of any node has reported progress for the hang timeout plus half a lease (PROTOCOL.md,
// rule 22). The count starts with the generation's first report; living through the first minute is
// not a report. Half a lease is added because a node may stall for that long without effect. Pure
// functions.
#pragma once

#include <string>
#include <vector>

#include "rendezvous/model/messages.h"

namespace ddprun::rendezvous {

// The slowest workers of one member, as its newest Beat tells.
struct NodeSteps {
    Member member;
    std::vector<RankStep> slowest;
};

struct Slow {
    NodeId node;
    int rank = 0, local_rank = 0;
    std::int64_t step = -1;
    bool operator==(const Slow&) const = default;
};

struct Slowest {
    std::vector<Slow> workers;  // at most kSlowest, the slowest first
    // True if all workers at the lowest step are on one node and all other workers are ahead. The
    // others then wait for this node. If all workers are at one step, nobody can tell.
    bool one_node = false;
};

// Orders by step, then by rank. A rank without a step comes last, because many programs report on
// one rank only.
bool slower(const RankStep& a, const RankStep& b);
Slowest find_slowest(const std::vector<NodeSteps>& nodes);

// When the generation counts as hung, if no report comes before.
Time hangs_at(Time newest_report, const Limits& limits);
// "--hang-timeout 30.0 s".
std::string hang_option(const Limits& limits);

// Adds to a hung generation's outcome where a worker is: `who`, and what its node has answered;
// null: it has not.
void add_stack(WorkerOutcome& outcome, const std::string& who, const WorkerOutcome* answer);

// "rank 3 (local 1 on gpu02), at step 17".
std::string place_of(const Slow& slow);
// "no rank has made progress for 31.2 s (--hang-timeout 30.0 s); the slowest is rank 3 …".
std::string hang_sentence(Duration silent, const Limits& limits, const Slowest& slowest);
// For a generation that has run for so long without any report: nothing can be judged, and how a
// program reports.
std::string unjudged_sentence(Duration run, const Limits& limits);

}  // namespace ddprun::rendezvous
