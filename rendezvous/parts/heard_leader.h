// The leader that this node heard last. The dormant service of this node names it to callers
// (PROTOCOL.md, rule 10).
//
// Pure; owned by the rendezvous machine.
#pragma once

#include <optional>

#include "rendezvous/rules/succession.h"

namespace ddprun::rendezvous {

class HeardLeader {
  public:
    // An empty peer means that the leader is lost.
    void heard(const Peer& leader, Time now) {
        leader_ = leader == Peer{} ? std::nullopt : std::optional(leader);
        at_ = now;
    }
    Elsewhere answer(Time now, Duration lease) const {
        return dormant_answer(leader_, at_, now, lease);
    }

  private:
    std::optional<Peer> leader_;
    Time at_ = kLongAgo;
};

}  // namespace ddprun::rendezvous
