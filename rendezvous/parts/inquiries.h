// Which services a leader without a generation asks whether they lead with more right (PROTOCOL.md,
// rule 11): the writer of the newest entry, and in turn some of the nodes before it in the order.
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

    // A round is due. Returns the services to call. Answers to the previous round no longer count.
    using MayCall = std::function<bool(const Peer&)>;
    std::vector<Peer> round(Time now, Duration lease, const std::optional<Peer>& writer,
                            const std::vector<Peer>& before, const MayCall& may_call);
    // The peer of this node, if it was asked in this round.
    std::optional<Peer> asked(const NodeId& node) const;

  private:
    Time next_ = kNever;
    std::size_t turns_ = 0;
    std::map<NodeId, Peer> asked_;
};

}  // namespace ddprun::rendezvous
