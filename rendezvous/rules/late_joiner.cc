// Decides when a smaller world stops to take in new nodes (late_joiner.h).
#include "rendezvous/rules/late_joiner.h"

#include <algorithm>

#include "rendezvous/model/node_name.h"
#include "rendezvous/rules/quorum.h"

namespace ddprun::rendezvous {

JoinVerdict decide_join(const LateJoiners& late, const Limits& limits, Time now) {
    const int room = limits.max_nodes - late.members;
    if (limits.on_join != OnJoin::restart || late.names.empty() || room <= 0 || late.ending)
        return {};
    // A snapshot after the arrival makes the stop cheap. The interval bounds the wait for programs
    // that never report one.
    const Time latest = late.since + limits.join_interval;
    if (!late.snapshot && now < latest) return {false, latest, {}};
    const int next = late.members + std::min(room, static_cast<int>(late.names.size()));
    return {true, now,
            name_some(late.names) + " joined: growing from " + std::to_string(late.members) +
                " to " + std::to_string(next) + " of " + std::to_string(limits.max_nodes) + " " +
                plural_of(limits.order)};
}

std::string parked_sentence(int members, const Limits& limits) {
    const std::string runs = std::to_string(members) + " of " + std::to_string(limits.max_nodes) +
                             " " + plural_of(limits.order) + " run without this one; ";
    if (members >= limits.max_nodes || limits.on_join == OnJoin::spare)
        return runs + "it is a spare and will replace one that is lost";
    if (limits.on_join == OnJoin::wait)
        return runs + "it starts with the next generation (--on-join=wait)";
    return runs + "it starts after the next snapshot, in " + to_text(limits.join_interval) +
           " at the latest (--join-interval)";
}

}  // namespace ddprun::rendezvous
