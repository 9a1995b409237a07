// Counts generations that fail early.
#include "agent/warm/warm_policy.h"

#include <algorithm>
#include <utility>

namespace ddprun::agent::warm {

void WarmPolicy::begin(bool warm, Time now) {
    warm_ = warm;
    on_trial_ = std::exchange(next_is_cold_, false) && !warm;
    progressed_ = false;
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
    const bool early = failed && is_early(now);
    if (std::exchange(on_trial_, false) && !early) ++blamed_;
    began_ = prepare_at_ = kNever;
    next_is_cold_ = early && warm_;
    return next_is_cold_;
}

}  // namespace ddprun::agent::warm
