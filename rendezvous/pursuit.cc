// Nodes that are not heard: the part of the rendezvous machine that calls their own ports (design
// 4.3, rule 13). A refused connect is proof that the process is gone with its keeper and workers,
// and comes a lease earlier than any silence; all else proves nothing.
#include <algorithm>

#include "rendezvous/machine_state.h"

namespace ddprun::rendezvous {
namespace {

constexpr double kSilent = 0.6;         // of a lease without a Beat: the connection is given up
constexpr double kScan = 0.1;           // of a lease between two looks at who is silent
constexpr double kStalled = 0.3;        // of a lease without a step: what is silent is ourselves
constexpr double kCounts = 0.05;        // of a lease after a refusal
constexpr double kAgainReset = 0.01;    // of a lease, until it is called again
constexpr double kAgainAnswered = 0.1;  // it will come by itself
constexpr double kAgain = 0.2;
constexpr double kPursued = 3.0;  // leases, of one that is no member

}  // namespace

void Machine::State::on_lost(Time now, Session session) {
    const NodeState* node = roster.of(session);
    const NodeId id = node ? node->id : NodeId{};
    const bool joined = node && node->joined;
    roster.lost(session);
    if (joined) pursue(now, id);
}

void Machine::State::scan(Time now) {
    const bool stalled = now - last_step > share(lease(), kStalled);
    last_step = now;
    if (single() || now < next_scan) return;
    next_scan = now + share(lease(), kScan);
    keep_standby();
    if (phase == Phase::gathering && top)
        for (const Member& member : top->assignment.members) {
            const NodeState* node = roster.find(member.node);
            if (!node || !node->connected()) pursue(now, member.node);
        }
    if (stalled) return;
    std::vector<NodeId> silent;
    for (const auto& [id, node] : roster.nodes())
        if (node.connected() && id != self.node && now - node.beat_came > share(lease(), kSilent))
            silent.push_back(id);
    for (const NodeId& id : silent) {
        const Session session = *roster.find(id)->session;
        effects.push_back(Close{session});
        on_lost(now, session);
    }
}

bool Machine::State::may_refuse(const NodeId& id) const {
    const NodeState* node = roster.find(id);
    const Member* member = top ? top->assignment.find(id) : nullptr;
    return (node && node->answered) || (member && member->answered);
}

void Machine::State::pursue(Time now, const NodeId& id) {
    if (single() || phase == Phase::closed || roster.gone(id) || pursuits.contains(id) ||
        id == self.node || !may_refuse(id))
        return;
    const NodeState* node = roster.find(id);
    const Member* member = top ? top->assignment.find(id) : nullptr;
    const Offer* offer = member ? &member->offer : &node->offer;
    if (offer->service_port == 0) return;
    pursuits[id] = {{id, offer->address, offer->service_port}, now, now, kNever};
}

void Machine::State::chase(Time now) {
    std::vector<NodeId> lost;
    for (auto it = pursuits.begin(); it != pursuits.end();) {
        auto& [id, pursuit] = *it;
        const NodeState* node = roster.find(id);
        if (roster.gone(id) || (node && node->connected()) ||
            (!is_member(id) && now - pursuit.since > share(lease(), kPursued))) {
            it = pursuits.erase(it);
            continue;
        }
        if (now >= pursuit.refused_until) lost.push_back(id);
        if (now >= pursuit.next && pursuit.refused_until == kNever) {
            effects.push_back(Call{pursuit.peer, share(lease(), kAgain)});
            pursuit.next = kNever;
        }
        wake_at(std::min(pursuit.next, pursuit.refused_until));
        ++it;
    }
    for (const NodeId& id : lost) {
        pursuits.erase(id);
        on_gone(now, id, "is lost: nobody listens on its port any more");
    }
}

void Machine::State::on_called(Time now, const Called& called) {
    using Outcome = Called::Outcome;
    const bool itself = called.outcome == Outcome::answered && called.standing.node == called.node;
    if (NodeState* node = roster.find(called.node); node && itself) node->answered = true;
    if (const auto found = pursuits.find(called.node); found != pursuits.end()) {
        Pursuit& pursuit = found->second;
        if (called.outcome == Outcome::refused)
            pursuit.refused_until = now + share(lease(), kCounts);
        else
            pursuit.next = now + share(lease(), called.outcome == Outcome::reset ? kAgainReset
                                                : itself                         ? kAgainAnswered
                                                                                 : kAgain);
    }
    if (itself) answered_inquiry(now, called);
}

}  // namespace ddprun::rendezvous
