// Finds a leader, or makes this node the leader (rendezvous/PROTOCOL.md, rule 10). Part of the
// agent machine.
#include <algorithm>

#include "agent/machine/machine_state.h"
#include "rendezvous/model/durations.h"

namespace ddprun::agent {

// Before the first Welcome the limit is the join timeout, and later too if another node may lead. A
// leader that nobody can follow counts as lost after two leases.
Duration MachineState::patience() const {
    if (!link.was_welcomed() || link.call()) return config.join_timeout;
    return share(lease.lease(), rendezvous::kLeaderless);
}

// A node without an order calls the endpoint: there was no leader yet, or the ledger is not shared.
void MachineState::connect(Time now) {
    link.disconnected();
    link.wait_until(kNever);
    lease.disconnected();
    const bool serves = config.leads && yielded_to.address.empty();
    if (serves && !link.was_welcomed())
        effects.push_back(Lead{{config.node, config.offer.address, config.offer.service_port}});
    effects.push_back(Connect{
        .deadline = std::max(link.lost_since() + patience(), now),
        .hello = {config.run_id, config.node, config.version, config.requeue, config.limits},
        .address = yielded_to.address,
        .port = yielded_to.port,
        .once = false,
        .self = serves});
}

void MachineState::link_up(const LinkUp& up) {
    if (config.offer.address.empty()) config.offer.address = up.local_address;
}

void MachineState::link_lost(Time now, const std::string& sentence) {
    if (link.is_refused() || link.waits()) return;  // of a link that was given up
    if (link.is_welcomed()) {
        link.lost(now);
        note(Note::Level::warn,
             "the link to the rendezvous is lost: " + sentence + "; reconnecting");
        if (link.has_order()) {
            // Our dormant service must not send callers to a leader that this node has just lost.
            effects.push_back(LeaderHeard{});
            return search(now);
        }
    } else if (now - link.lost_since() >= patience()) {
        return leave(
            now, rendezvous::unavailable(
                     link.was_welcomed() ? "the rendezvous has been lost for " +
                                               to_text(now - link.lost_since()) + ": " + sentence
                                         : sentence + " (--rdzv-endpoint, --join-timeout)"));
    } else if (link.call()) {
        link.next(now);
        return place_call(now);
    }
    connect(now);
}

void MachineState::search(Time now) {
    link.search(now, lease.lease(), may_lead());
    place_call(now);
}

// Makes the next call, or waits until its time.
void MachineState::place_call(Time now) {
    link.disconnected();
    lease.disconnected();
    if (!link.call()) return connect(now);
    if (now - link.lost_since() >= patience())
        return leave(
            now, rendezvous::unavailable("no leader has been found for " +
                                         to_text(now - link.lost_since()) + " (--join-timeout)"));
    // It is this node's own turn but it may not lead, so it skips itself.
    if (link.call()->from <= now && link.call()->peer.node == config.node && !link.call()->lead)
        link.next(now);
    link.wait_until(link.call()->from > now ? link.call()->from : kNever);
    if (link.calls_at() != kNever) return;
    if (link.call()->lead) {
        note(Note::Level::warn, "no leader answers; this node leads now");
        effects.push_back(Lead{{config.node, config.offer.address, config.offer.service_port}});
    }
    effects.push_back(Connect{
        .deadline = link.call()->until,
        .hello = {config.run_id, config.node, config.version, config.requeue, config.limits},
        .address = link.call()->peer.address,
        .port = link.call()->peer.port,
        .once = true,
        .self = link.call()->lead});
}

// The called service does not lead. With an order the search goes on; without one the node follows
// the address, or waits a moment and calls the endpoint again.
void MachineState::on_elsewhere(Time now, const rendezvous::Elsewhere& elsewhere) {
    if (link.has_order()) {
        if (!link.call()) {
            link.lost(now);
            link.search(now, lease.lease(), may_lead());
        }
        link.elsewhere(now, elsewhere);
        return place_call(now);
    }
    // This node's own service has yielded: with no order, nobody else knows that leader's address.
    if (config.leads && !elsewhere.address.empty()) {
        yielded_to = elsewhere;
        if (link.is_welcomed()) link.lost(now);
    }
    connect(now);
    auto& asked = std::get<Connect>(effects.back());
    asked.address = elsewhere.address;
    asked.port = elsewhere.port;
    if (!elsewhere.address.empty()) return;
    effects.pop_back();  // "wait"
    link.wait_until(now + share(lease.lease(), rendezvous::kCallAgain));
}

// During a search, a refusal may come from a stranger on a port that was once one of ours. The node
// goes on with the next call.
void MachineState::on_refused(Time now, const rendezvous::Refused& said) {
    if (link.call()) {
        link.next(now);
        return place_call(now);
    }
    link.refused();
    leave(now, rendezvous::unavailable("the rendezvous refused this node: " + said.sentence));
}

// A leader that is frozen or cut off keeps its connection open, so silence counts as loss too
// (rendezvous/PROTOCOL.md, rule 10).
void MachineState::check_link(Time now) {
    if (link.is_welcomed() && lease.next_beat() != kNever &&
        now - lease.silent_since() >= share(lease.lease(), rendezvous::kLeaderSilent))
        link_lost(now, "no answer for " + to_text(now - lease.silent_since()));
}

void MachineState::heard_leader() {
    if (!link.has_order() || leads()) return;
    if (!link.leader()->address.empty()) effects.push_back(LeaderHeard{*link.leader()});
}

void MachineState::on_ledger_found(bool found) {
    if (found && !ledger_found && config.may_lead)
        note(Note::Level::debug, "this node has found the leader's ledger, so it can take over");
    ledger_found = found;
}

}  // namespace ddprun::agent
