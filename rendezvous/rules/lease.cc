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
    if (oldest == kLongAgo) return false;
    const Time before = held_until_;
    held_until_ = std::max(before, oldest + share(lease_, kHold));
    if (before == kLongAgo) return push_first_;
    return held_until_ > before && before - now < share(lease_, kPushBelow);
}

Time Lease::safe_after() const {
    if (held_until_ == kNever || !granted()) return held_until_;
    return held_until_ + share(lease_, kMargin);
}

std::pair<NodeId, Time> Lease::slowest() const {
    if (by_time_.empty()) return {};
    const auto& [at, node] = *by_time_.begin();
    return {node, at};
}

}  // namespace ddprun::rendezvous
