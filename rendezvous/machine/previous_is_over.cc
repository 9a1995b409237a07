// Decides on what evidence the next entry may be proposed, and which nodes can be members
// (PROTOCOL.md, rules 7 and 8). Part of the rendezvous machine.
#include <algorithm>

#include "rendezvous/machine/machine_state.h"

namespace ddprun::rendezvous {

// PROTOCOL.md, rule 7a: every member has vowed, or is proven gone.
bool MachineState::all_back() {
    if (gathering.all_are_back(newest())) return true;
    if (!gathering.may_all_be_back()) return false;
    std::int64_t absent = 0;
    for (const Member& member : top()->assignment.members) {
        const NodeState* node = roster.find(member.node);
        if (!roster.gone(member.node) && !(node && is_back(*node))) ++absent;
    }
    gathering.counted_absent(absent, newest());
    return absent == 0;
}

// PROTOCOL.md, rule 7: whether this leader may create the entry after the newest generation.
// `by_lease` is set if only case (b) allows it.
bool MachineState::may_follow(Time now, bool& by_lease) {
    by_lease = false;
    if (begins_allocation()) return may_begin(now);
    const Generation g = newest();
    if (!claim.is_over()) return false;
    if (all_back()) return true;
    const bool mine = held() && held()->assignment.generation == g;
    if (mine && (!held()->over || now <= held()->lease.safe_after())) return false;
    // Case (b): the lease that this leader granted has passed, with its margin.
    if (mine && held()->lease.granted()) return by_lease = true;
    // Case (c) proves that the leases of *other* leaders have passed. A lease that this node
    // granted in an earlier activation must have passed too.
    if (!claim.is_safe_after_own(now)) return false;
    return std::any_of(top()->assignment.members.begin(), top()->assignment.members.end(),
                       [&](const Member& member) {
                           const NodeState* node = roster.find(member.node);
                           return node && node->idle() && node->beat.floor >= g &&
                                  node->beat.silent >= share(lease(), kSilentOthers);
                       });
}

bool MachineState::ready(Time now, const NodeState& node) const {
    if (!node.connected() || roster.gone(node.id) || !node.idle()) return false;
    return single() || (node.confirmed && now - *node.confirmed < share(lease(), kConfirmedWithin));
}

bool MachineState::candidate(Time now, const NodeState& node) const {
    return node.beat.floor >= newest() && ready(now, node) && !record.is_drained(node.id.name) &&
           !leaving.contains(node.id);
}

int MachineState::count_candidates(Time now) const {
    const auto& nodes = roster.nodes();
    return static_cast<int>(std::count_if(
        nodes.begin(), nodes.end(), [&](const auto& each) { return candidate(now, each.second); }));
}

std::vector<Candidate> MachineState::candidates(Time now) const {
    std::vector<Candidate> here;
    for (const auto& [id, node] : roster.nodes())
        if (candidate(now, node)) here.push_back({id, node.offer});
    return here;
}

// PROTOCOL.md, rule 8: absent members of the last generation are waited for, unless they are gone.
// In case (b) only connected ones are. Idle nodes whose vow is on its way are waited for too:
// otherwise the world would close without the node that it was stopped for.
Time MachineState::members_awaited_until(Time now, bool by_lease) const {
    if (begins_allocation()) return kLongAgo;
    for (const Member& member : top()->assignment.members) {
        const NodeState* node = roster.find(member.node);
        if ((node && candidate(now, *node)) || roster.gone(member.node) || given_up(member.node) ||
            record.is_drained(member.node.name) || leaving.contains(member.node) ||
            (by_lease && (!node || !node->connected())))
            continue;
        return gathering.since() + share(lease(), kMembersAwaited);
    }
    for (const auto& [id, node] : roster.nodes())
        if (node.beat.floor < newest() && ready(now, node) && !record.is_drained(id.name) &&
            !leaving.contains(id))
            return gathering.since() + share(lease(), kMembersAwaited);
    return kLongAgo;
}

}  // namespace ddprun::rendezvous
