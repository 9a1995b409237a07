// Whether a worker's failure ended its generation, or something before it did: a node is lost, and
// its peers fail because of it; which of the two is known first is chance. Pure functions.
#pragma once

#include <optional>
#include <vector>

#include "rendezvous/rules/generation_facts.h"

namespace ddprun::rendezvous {

// A member that has not said that its workers are gone, when what follows may be decided.
struct Absent {
    NodeId node;
    std::optional<Time> heard;  // last, by this leader; none: it has led only since
};

// An interruption before the first failure, or within a `beat` after it, is the cause: a loss is
// known later than what comes of it. So is the loss of an absent member that was not heard later
// than that. Of a member that this leader has never heard, the leader before has told whether it
// was silent (facts.silent); where it has told nothing, it was lost itself, and the member counts
// as silent. None: the failure itself is the cause.
std::optional<GenerationFacts::Interrupted> cause_before_failure(const GenerationFacts& facts,
                                                                 const std::vector<Absent>& absent,
                                                                 Duration beat);

// When a leader can tell which members it has not heard since the first failure: all that live have
// sent a Beat by then.
Time silence_is_known_at(const GenerationFacts& facts, Duration beat);

// Whether that one was last heard before the first failure, or within a beat after it.
bool silent_since_failure(const GenerationFacts& facts, const Absent& absent, Duration beat);

}  // namespace ddprun::rendezvous
