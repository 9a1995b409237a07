// Judges the limits that an operator sets while the job runs (PROTOCOL.md, rule 27).
//
// A budget of restarts may be below what is used up: then the next failure of a worker ends the
// job, and the answer says so. Somebody who watches a job may want just that. MIN may be raised
// only to as many nodes as are here. With more, the next generation would wait for nodes that
// nobody has seen, and the job would end at the join timeout. Who expects them asks again when they
// are here. MIN may always be lowered.
//
// Pure.
#pragma once

#include <string>

#include "rendezvous/model/model.h"

namespace ddprun::rendezvous {

// What the decision depends on.
struct LimitsNow {
    const Limits& hold;     // the limits that hold now
    int here = 0;           // nodes that could be members of the next generation
    int restarts_used = 0;  // of the budget
};

struct LimitChange {
    enum class What {
        changes,        // record `to`
        holds_already,  // nothing would change
        refused,        // the sentence says why
    };
    What what = What::refused;
    OperatorLimits to = {};  // MIN and MAX together, since they must fit each other for ever
    std::string sentence;
};

// "2 to 4 nodes, 1 of 5 restarts used".
std::string described(const Limits& limits, int restarts_used);

LimitChange decide_limits(const OperatorLimits& asked, const LimitsNow& now);

}  // namespace ddprun::rendezvous
