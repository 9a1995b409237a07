// The right of this leader to the newest generation (claim.h).
#include "rendezvous/parts/claim.h"

#include <algorithm>

namespace ddprun::rendezvous {

// A lease that this leader granted for the same generation still counts. The members follow it
// until the first Ack of the other leader has come.
bool Claim::adopt(const LedgerEntry& entry) {
    const bool same = top_ && entry.assignment.generation == newest();
    own_safe_after_ = held_ && same ? held_->lease.safe_after() : same ? own_safe_after_ : kLongAgo;
    held_.reset();
    top_ = entry;
    return same;
}

void Claim::hold(Time now, Duration lease, bool unlimited) {
    const Assignment& assignment = top_->assignment;
    const bool taken_over = top_->takes_over();
    held_ = Held{top_->number, assignment, Lease(assignment.members, lease, unlimited, taken_over),
                 false,        taken_over, now};
    held_->places = places_of(assignment);
}

void Claim::end_held() {
    held_->over = true;
    over_ = std::max(over_, held_->assignment.generation);
}

Time Claim::may_follow_at() const {
    // One nanosecond later: the comparisons in may_follow() are strict.
    const Time mine =
        held_ && held_->over && held_->lease.granted() ? held_->lease.safe_after() : kNever;
    const Time own = own_safe_after_ > kLongAgo ? own_safe_after_ : kNever;
    const Time at = std::min(mine, own);
    return at == kNever ? kNever : at + Duration{1};
}

}  // namespace ddprun::rendezvous
