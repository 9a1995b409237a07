// Counts generations that fail early.
#include "warm/warm_policy.h"

#include <algorithm>
#include <utility>

namespace ddprun::agent::warm {

void WarmPolicy::begin(bool warm, Time now) {
    warm_ = warm;
    on_trial_ = std::exchange(next_is_cold_, false) && !warm;
    progressed_ = false;
    began_ = now;
    pause_ = kLook;
    next_look_ = off() ? kNever : now + pause_;
}

void WarmPolicy::progressed(Time now) {
    if (progressed_ || began_ == kNever) return;
    progressed_ = true;
    pause_ = kLook;
    if (!off()) next_look_ = now;
}

bool WarmPolicy::looked(bool some, bool grew, Time now) {
    if (next_look_ == kNever) return false;
    pause_ = grew ? kLook : std::min(2 * pause_, kLongest);
    next_look_ = now + pause_;
    return some && (!crowded_ || progressed_ || now - began_ >= kSettled);
}

bool WarmPolicy::ended(bool failed, bool met, Time now) {
    if (began_ == kNever) return false;
    const bool early = failed && !met && !progressed_ && now - began_ < kEarly;
    if (std::exchange(on_trial_, false) && !early) ++blamed_;
    began_ = next_look_ = kNever;
    next_is_cold_ = early && warm_;
    return next_is_cold_;
}

}  // namespace ddprun::agent::warm
