#include "rendezvous/lease.h"

#include <algorithm>

namespace ddprun::rendezvous {

Lease::Lease(const std::vector<Member>& members, Duration lease, bool unlimited, bool taken_over)
    : lease_(lease), unlimited_(unlimited), push_first_(taken_over) {
    for (const Member& member : members) confirmed_.emplace(member.node, kLongAgo);
    if (unlimited_) held_until_ = kNever;
}

bool Lease::confirm(const NodeId& node, Time sent, Time now) {
    const auto it = confirmed_.find(node);
    if (unlimited_ || it == confirmed_.end() || sent <= it->second) return false;
    it->second = sent;
    const Time oldest = slowest().second;
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
    const auto it =
        std::min_element(confirmed_.begin(), confirmed_.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    return it == confirmed_.end() ? std::pair<NodeId, Time>{} : std::pair<NodeId, Time>{*it};
}

}  // namespace ddprun::rendezvous
