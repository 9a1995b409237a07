// The leader's half of the one lease of a generation (design 4.3, rules 3 and 5): until when it is
// held, computed from the Acks that every member has echoed. The minimum over all members decides,
// connected or not, so that the silence of one ends the generation for all. Pure; owned by the
// rendezvous machine.
//
//     held_until = min over members of (when the newest Ack it has echoed was sent) + 0.8 lease
//     (only grows)
#pragma once

#include <map>
#include <vector>

#include "rendezvous/model/model.h"

namespace ddprun::rendezvous {

class Lease {
  public:
    Lease() = default;
    // unlimited: a job of one node, which nobody else could train. taken_over: its members run, and
    // must hear of the first grant at once.
    Lease(const std::vector<Member>& members, Duration lease, bool unlimited,
          bool taken_over = false);

    // Not copied, for the members' places point into it.
    Lease(Lease&&) = default;
    Lease& operator=(Lease&&) = default;

    // The member has echoed an Ack sent at `sent`. Returns true when the lease grew and all should
    // hear it at once.
    bool confirm(const NodeId& node, Time sent, Time now);

    bool has(const NodeId& node) const { return members_.contains(node); }
    bool granted() const {
        return held_until_ > kLongAgo;
    }  // every member has confirmed at least once
    Time held_until() const { return held_until_; }
    bool expired(Time now) const { return granted() && now > held_until_; }
    // The time after which no member can be training under this lease any more.
    Time safe_after() const;
    // Who has confirmed least recently, and when; for the sentence.
    std::pair<NodeId, Time> slowest() const;

  private:
    // Who has confirmed when, oldest first: the least of ten thousand is asked for at each Beat.
    using ByTime = std::multimap<Time, NodeId>;
    ByTime by_time_;
    std::map<NodeId, ByTime::iterator> members_;
    Duration lease_{};
    bool unlimited_ = false, push_first_ = false;
    Time held_until_ = kLongAgo;
};

}  // namespace ddprun::rendezvous
