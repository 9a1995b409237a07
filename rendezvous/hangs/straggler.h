// Which rank is slow, so that all others wait for it in each step, judged from the pace that nodes
// tell. Pure.
//
// A rank that is slow is hardly ever in a collective, and the others are mostly, since they wait
// for it there. Their steps take the same time, so what a rank does outside takes it longer in the
// measure of its share: 96 % against 32 % is three times as long.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rendezvous/model/standstill.h"

namespace ddprun::rendezvous {

// What one node has told.
struct NodePace {
    int first_rank = 0;
    int workers = 1;
    Pace pace;
};

struct Straggler {
    int rank = 0;
    int outside = 0;  // percent of its time
    int others = 0;   // the median of all others, 1 or more
    double factor() const { return static_cast<double>(outside) / others; }
};

// Nothing unless all nodes have told their pace, and one rank takes at least twice as long as the
// median of the others, and 30 % of the time more.
std::optional<Straggler> find_straggler(const std::vector<NodePace>& nodes);

// For example "rank 2 (local 0 on n17) is slow, not stuck: it has been outside of collectives 96 %
// of the time, the others 32 %, so it takes 3.0 times as long". `who`: the rank.
std::string straggler_sentence(const Straggler& straggler, const std::string& who);

}  // namespace ddprun::rendezvous
