// Counts generations that fail early.
#include "agent/warm/warm_policy.h"

#include <algorithm>

namespace ddprun::agent::warm {

void WarmPolicy::begin(bool warm, Time now) {
    warm_ = warm;
    progressed_ = next_is_cold_ = false;
    began_ = now;
    prepare_at_ = off() ? kNever : now + kSettled;
}

void WarmPolicy::progressed(Time now) {
    if (progressed_ || began_ == kNever) return;
    progressed_ = true;
    if (!off()) prepare_at_ = std::min(prepare_at_, now + kAfterProgress);
}

bool WarmPolicy::ended(bool failed, Time now) {
    if (began_ == kNever) return false;
    const bool early = failed && warm_ && !progressed_ && now - began_ < kEarly;
    began_ = prepare_at_ = kNever;
    if (!early) return false;
    ++early_;
    next_is_cold_ = true;
    return true;
}

}  // namespace ddprun::agent::warm
