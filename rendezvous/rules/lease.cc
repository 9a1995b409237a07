// The leader's half of the lease: grows with echoes, never shrinks (lease.h).
#include "rendezvous/rules/lease.h"

#include <algorithm>

#include "rendezvous/model/durations.h"

namespace ddprun::rendezvous {

Lease::Lease(const std::vector<Member>& members, Duration lease, bool unlimited, bool taken_over)
    : lease_(lease), unlimited_(unlimited), push_first_(taken_over) {
    for (const Member& member : members)
        members_.emplace(member.node, by_time_.emplace(kLongAgo, member.node));
    if (unlimited_) held_until_ = kNever;
}

bool Lease::confirm(const NodeId& node, Time sent, Time now) {
    const auto member = members_.find(node);
    if (unlimited_ || member == members_.end() || sent <= member->second->first) return false;
    auto place = by_time_.extract(member->second);
    place.key() = sent;
    member->second = by_time_.insert(by_time_.end(), std::move(place));  // most often the newest
    const Time oldest = by_time_.begin()->first;
    // A member that has not confirmed at all: nothing is granted yet. Otherwise its absence would
    // go unnoticed.
    if (oldest == kLongAgo) return false;
    const Time before = held_until_;
    // It never shrinks: members may already run by the longer lease that they were granted.
    held_until_ = std::max(before, oldest + share(lease_, kHold));
    if (before == kLongAgo) return push_first_;
    // Little was left before it grew, so some member is close to its deadline. The regular Acks may
    // come too late for it.
    return held_until_ > before && before - now < share(lease_, kPushBelow);
}

Time Lease::safe_after() const {
    if (held_until_ == kNever || !granted()) return held_until_;
    // PROTOCOL.md, section 5: the margin covers the drift of two clocks and the time of a kill.
    return held_until_ + share(lease_, kMargin);
}

std::pair<NodeId, Time> Lease::slowest() const {
    if (by_time_.empty()) return {};
    const auto& [at, node] = *by_time_.begin();
    return {node, at};
}

}  // namespace ddprun::rendezvous
