// Facts about a generation whose entry this leader has not read yet. They count as soon as the
// leader knows the entry.
//
// Pure; owned by the rendezvous machine.
#pragma once

#include <map>
#include <utility>

#include "rendezvous/rules/generation_facts.h"

namespace ddprun::rendezvous {

class EarlyFacts {
  public:
    void hear(const NodeId& node, const Facts& said, Time now) {
        GenerationFacts& known = facts_[node];
        if (known.generation() != said.generation) known = GenerationFacts(said.generation);
        known.hear(said, now);
    }
    std::map<NodeId, GenerationFacts> take() { return std::exchange(facts_, {}); }

  private:
    std::map<NodeId, GenerationFacts> facts_;
};

}  // namespace ddprun::rendezvous
