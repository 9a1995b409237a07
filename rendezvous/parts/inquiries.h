// Whom a leader that holds no generation asks whether it leads with more right (rule 11): the
// writer of the newest entry, and some of those that stand before it in the order, in turn.
//
// Pure; owned by the rendezvous machine.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "rendezvous/model/model.h"

namespace ddprun::rendezvous {

class Inquiries {
  public:
    void begin(Time now, Duration lease);
    Time next_round() const { return next_; }

    // A round is due: whom to call. Late answers to the round before no longer count.
    using MayCall = std::function<bool(const Peer&)>;
    std::vector<Peer> round(Time now, Duration lease, const std::optional<Peer>& writer,
                            const std::vector<Peer>& before, const MayCall& may_call);
    // Who was asked in this round, by its node.
    std::optional<Peer> asked(const NodeId& node) const;

  private:
    Time next_ = kNever;
    std::size_t turns_ = 0;
    std::map<NodeId, Peer> asked_;
};

}  // namespace ddprun::rendezvous
