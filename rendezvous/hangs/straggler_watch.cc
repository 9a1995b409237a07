// Counts for how long the same rank has been slow.
#include "rendezvous/hangs/straggler_watch.h"

#include <chrono>

namespace ddprun::rendezvous {
namespace {

constexpr auto kFirstToldAfter = std::chrono::minutes{3};
constexpr auto kPeriod = std::chrono::seconds{15};
constexpr int kToldTimes = 4;

}  // namespace

bool StragglerWatch::is_due(Time now) {
    if (now - looked_at_ < kPeriod) return false;
    looked_at_ = now;
    return true;
}

bool StragglerWatch::judged(Time now, const std::optional<Straggler>& found) {
    if (!found) return forget(), false;
    if (rank_ != found->rank) {
        rank_ = found->rank;
        since_ = now;
        next_ = kFirstToldAfter;
    }
    if (now - since_ < next_) return false;
    next_ = kToldTimes * (now - since_);
    return true;
}

}  // namespace ddprun::rendezvous
