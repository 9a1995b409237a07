// Whether a generation may close now: closed, wait until, or impossible, each with its sentence. A
// pure function.
#pragma once

#include <string>
#include <vector>

#include "rendezvous/model/model.h"

namespace ddprun::rendezvous {

struct QuorumInput {
    int here = 0;                                  // nodes that could be members now
    std::vector<std::string> missing;              // names of expected nodes that are not here
    std::vector<std::string> out_of_service = {};  // of these, who will not come: "n3 (drained)"
    bool first = false;               // no generation was made before: the last call applies
    Time since_gathering = kLongAgo;  // when gathering began
    Time since_min = kNever;          // when `here` last reached min; kNever: it has not
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

// At most three names and the count of the rest: "gpu03, gpu04, gpu06 and 2 more". Of several tasks
// of a host only that is named, where their first one stands: "gpu03 (4 tasks), gpu04/1".
std::string name_some(const std::vector<std::string>& names);

}  // namespace ddprun::rendezvous
