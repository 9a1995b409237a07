// Looks for waiting nodes at the right moments (late_join_watch.h).
#include "rendezvous/parts/late_join_watch.h"

#include <algorithm>

#include "rendezvous/model/durations.h"

namespace ddprun::rendezvous {

std::optional<JoinVerdict> LateJoinWatch::look(Time now, const World& world, const Limits& limits) {
    next_look_ = now + share(limits.times.lease, kLateLook);
    looked_at_ = world.snapshot;
    if (world.waiting.empty()) {
        since_ = kNever;
        return std::nullopt;
    }
    const bool first = since_ == kNever;
    if (first) {
        since_ = now;
        // Only a snapshot after this moment makes the stop cheap.
        snapshot_ = world.snapshot;
    }
    const JoinVerdict verdict = decide_join({.members = world.members,
                                             .names = world.waiting,
                                             .since = since_,
                                             .snapshot = world.snapshot > snapshot_,
                                             .ending = world.ending},
                                            limits, now);
    next_look_ = std::min(next_look_, verdict.until);
    return verdict;
}

}  // namespace ddprun::rendezvous
