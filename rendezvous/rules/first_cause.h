// Decides whether a worker's failure ended its generation, or an earlier event did. When a node is
// lost, its peers fail because of it, and it is chance which of the two the leader learns first
// (PROTOCOL.md, rule 15). Pure functions.
#pragma once

#include <optional>
#include <vector>

#include "rendezvous/rules/generation_facts.h"

namespace ddprun::rendezvous {

// A member that has not confirmed the end of its workers at the time of the decision.
struct Absent {
    NodeId node;
    // When this leader heard it last; empty: not since it leads.
    std::optional<Time> heard;
};

// The cause that explains the first failure, or nothing if the failure itself is the cause.
//
// An interruption explains it if it came before the failure or within a `beat` after it, because a
// loss is noticed later than its effects. The loss of an absent member explains it if the member
// was last heard by then. For a member that this leader has never heard, the previous leader has
// said whether it was silent (facts.silent). If the previous leader has said nothing, it was lost
// before it could judge, and the member counts as silent.
std::optional<GenerationFacts::Interrupted> cause_before_failure(const GenerationFacts& facts,
                                                                 const std::vector<Absent>& absent,
                                                                 Duration beat);

// When the leader can tell which members are silent since the first failure. By then every living
// member has sent a Beat.
Time silence_is_known_at(const GenerationFacts& facts, Duration beat);

// Whether that member was last heard before the first failure, or within a beat after it.
bool silent_since_failure(const GenerationFacts& facts, const Absent& absent, Duration beat);

}  // namespace ddprun::rendezvous
