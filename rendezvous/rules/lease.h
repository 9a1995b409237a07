// The leader's half of the lease of a generation (PROTOCOL.md, rules 3 and 5): until when the
// leader holds the generation, computed from the Acks that every member has echoed. The minimum
// over all members counts, connected or not, so the silence of one member ends the generation for
// all. Pure; owned by the rendezvous machine.
//
//     held_until = min over members of (when the newest Ack it has echoed was sent) + 0.8 lease
//     (it only grows)
#pragma once

#include <map>
#include <unordered_map>
#include <vector>

#include "rendezvous/model/node_hash.h"

namespace ddprun::rendezvous {

class Lease {
  public:
    Lease() = default;
    // unlimited: a job of one node, which no other node could continue. taken_over: the members run
    // already, so all of them must hear of the first grant at once.
    Lease(const std::vector<Member>& members, Duration lease, bool unlimited,
          bool taken_over = false);

    // Not copied: members_ holds iterators into by_time_.
    Lease(Lease&&) = default;
    Lease& operator=(Lease&&) = default;

    // The member has echoed an Ack that was sent at `sent`. Returns true if the lease grew and all
    // members should hear it at once.
    bool confirm(const NodeId& node, Time sent, Time now);

    bool has(const NodeId& node) const { return members_.contains(node); }
    bool granted() const {
        return held_until_ > kLongAgo;
    }  // every member has confirmed at least once
    Time held_until() const { return held_until_; }
    bool expired(Time now) const { return granted() && now > held_until_; }
    // No member can train under this lease after this time.
    Time safe_after() const;
    // The member whose confirmation is the oldest, and its time; for the log.
    std::pair<NodeId, Time> slowest() const;

  private:
    // Confirmations in the order of time. Each Beat needs the minimum, with up to ten thousand
    // members.
    using ByTime = std::multimap<Time, NodeId>;
    ByTime by_time_;
    std::unordered_map<NodeId, ByTime::iterator> members_;
    Duration lease_{};
    bool unlimited_ = false, push_first_ = false;
    Time held_until_ = kLongAgo;
};

}  // namespace ddprun::rendezvous
