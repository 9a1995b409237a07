// When a job hangs, and who is the slowest then. A generation hangs when no rank of any node has
// reported progress for the hang timeout, counted from the generation's first report on; living
// through the first minute is no report. Half a lease is added, for so long a node may stall
// without harm. Pure functions.
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
    // All that stand at the lowest step are on one node, and all others are ahead: then it is the
    // node that the others wait for. Where all stand at the same step nobody can tell.
    bool one_node = false;
};

// The lowest step counts, then the rank; who has named no step comes last, for many programs report
// on one rank alone.
bool slower(const RankStep& a, const RankStep& b);
Slowest find_slowest(const std::vector<NodeSteps>& nodes);

// When the generation is taken for hung, if nothing is reported until then.
Time hangs_at(Time newest_report, const Limits& limits);

// "rank 3 (local 1 on gpu02), at step 17".
std::string place_of(const Slow& slow);
// "no rank has made progress for 31.2 s (--hang-timeout 30.0 s); the slowest is rank 3 …".
std::string hang_sentence(Duration silent, const Limits& limits, const Slowest& slowest);

}  // namespace ddprun::rendezvous
