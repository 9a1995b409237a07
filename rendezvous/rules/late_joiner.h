// When nodes that joined while fewer than max_nodes run are taken in (PROTOCOL.md, rule 20): at the
// next snapshot that a worker reports, so that little work is repeated, and at the latest after the
// join interval. A pure function.
#pragma once

#include <string>
#include <vector>

#include "rendezvous/model/model.h"

namespace ddprun::rendezvous {

struct LateJoiners {
    int members = 0;  // number of members of the running generation
    // Nodes that could be members of the next generation.
    std::vector<std::string> names;
    Time since = kNever;    // since when the first of them waits
    bool snapshot = false;  // whether a worker has saved a snapshot since then
    bool ending = false;    // whether the generation is about to end anyway
};

struct JoinVerdict {
    bool regroup = false;  // stop the generation as planned, and make a larger one
    Time until = kNever;   // else: when to look again at the latest
    std::string sentence;  // "gpu03 joined: growing from 3 to 4 of 4 nodes"
};

JoinVerdict decide_join(const LateJoiners& late, const Limits& limits, Time now);

// The log line for a node that joined while others run.
std::string parked_sentence(int members, const Limits& limits);

}  // namespace ddprun::rendezvous
