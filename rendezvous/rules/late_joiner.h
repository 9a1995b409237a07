// When nodes that came while a smaller world runs are taken in (design 4.2): at the next snapshot
// that a worker reports, so that as little work as possible is done twice, and at the latest after
// the join interval. A pure function.
#pragma once

#include <string>
#include <vector>

#include "rendezvous/model/model.h"

namespace ddprun::rendezvous {

struct LateJoiners {
    int members = 0;                 // of the generation that runs
    std::vector<std::string> names;  // of those that are here and could be members of the next one
    Time since = kNever;             // since when the first of them waits
    bool snapshot = false;           // a snapshot newer than that was reported
    bool ending = false;             // the generation is about to end anyway
};

struct JoinVerdict {
    bool regroup = false;  // stop the generation as planned, and make a larger one
    Time until = kNever;   // else: look again then, at the latest
    std::string sentence;  // "gpu03 joined: 3 of 4 nodes ran, 4 will"
};

JoinVerdict decide_join(const LateJoiners& late, const Limits& limits, Time now);

// What a node hears that came while others run.
std::string parked_sentence(int members, const Limits& limits);

}  // namespace ddprun::rendezvous
