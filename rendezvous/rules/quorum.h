// Decides whether a generation may close now: it closes, waits, or is impossible (PROTOCOL.md,
// rules 8 and 18). Each verdict carries its sentence for the log. A pure function.
#pragma once

#include <string>
#include <vector>

#include "rendezvous/model/model.h"

namespace ddprun::rendezvous {

struct QuorumInput {
    int here = 0;                         // number of candidates now
    std::vector<std::string> missing;     // expected nodes that are not here
    std::vector<std::string> names = {};  // of those who are here
    // The missing nodes that Slurm has taken out of service.
    std::vector<std::string> out_of_service = {};
    bool first = false;               // there was no generation before: the last call applies
    Time since_gathering = kLongAgo;  // when gathering began
    Time since_min = kNever;          // when `here` last reached min_nodes; kNever: it has not
    Time wait_for_members =
        kLongAgo;  // until when missing members of the last generation are waited for
};

struct QuorumVerdict {
    enum class What { closes, waits, impossible };
    What what = What::waits;
    Time until = kNever;  // waits: look again then, at the latest
    std::string
        sentence;  // "still waiting: 5 of 8 nodes joined (min 6), missing gpu03, gpu04, gpu06"
};

QuorumVerdict decide_quorum(const QuorumInput& input, const Limits& limits, Time now);

// At most three names and the count of the rest: "gpu03, gpu04, gpu06 and 2 more". Several tasks of
// one host become one name, at the place of the first task: "gpu03 (4 tasks), gpu04/1".
std::string name_some(const std::vector<std::string>& names);

}  // namespace ddprun::rendezvous
