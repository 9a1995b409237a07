// Judges from starts and contacts how far the workers are (headway.h).
#include "agent/parts/headway.h"

#include <algorithm>

namespace ddprun::agent {

using rendezvous::Reach;

void Headway::in_contact(int processes, Time now) {
    contacts_ = std::max(contacts_, processes);
    if (contacts_ >= world_size_) all_called_at_ = std::min(all_called_at_, now);
}

Time Headway::met_at() const {
    if (all_called_at_ != kNever || started_at_ == kNever) return all_called_at_;
    return started_at_ + (contacts_ == 0 ? kCallsNoStore : kSomeCallNoStore);
}

Time Headway::more_at(Reach known) const {
    const Time met = met_at();
    if (known == Reach::start || met == kNever) return met;
    return known == Reach::met ? met + kLifeAfterMeeting : kNever;
}

Reach Headway::at(Time now) const {
    if (more_at(Reach::met) <= now) return Reach::progressed;
    return more_at(Reach::start) <= now ? Reach::met : Reach::start;
}

}  // namespace ddprun::agent
