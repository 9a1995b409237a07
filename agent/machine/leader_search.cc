// Finding a leader, and becoming one: the part of the agent machine that calls (design 4.3, rule
// 10).
#include <algorithm>

#include "agent/machine/machine_state.h"

namespace ddprun::agent {
namespace {

using rendezvous::Caller;
using rendezvous::LeaseMember;

// Without a succession: leases without a leader, once there was one, until a node gives up.
constexpr double kLeaderless = 2.0;

}  // namespace

// Before the first welcome the join timeout counts, and later too where another may lead; a leader
// that nobody can follow is lost when it does not come back within two leases.
Duration Machine::State::patience() const {
    if (!was_welcomed || call) return config.join_timeout;
    return share(lease.lease(), kLeaderless);
}

// Who has been told no order (there was no leader yet, or the ledger is not shared) calls the
// endpoint.
void Machine::State::connect(Time now) {
    welcomed = false;
    call_at = kNever;
    lease.disconnected();
    if (config.leads && !was_welcomed)
        effects.push_back(Lead{{config.node, config.offer.address, config.offer.service_port}});
    effects.push_back(Connect{
        .deadline = std::max(lost_since + patience(), now),
        .hello = {config.run_id, config.node, config.version, config.requeue, config.limits},
        .address = {},
        .port = 0,
        .once = false,
        .self = config.leads});
}

void Machine::State::link_up(const LinkUp& up) {
    if (config.offer.address.empty()) config.offer.address = up.local_address;
}

void Machine::State::link_lost(Time now, const std::string& sentence) {
    if (refused || call_at != kNever) return;  // of a link that was given up
    if (welcomed) {
        lost_since = now;
        note(Note::Level::warn,
             "the link to the rendezvous is lost: " + sentence + "; calling again");
        if (!caller.order().empty()) {
            // Whoever calls our service must not be sent to a leader that we have lost ourselves.
            effects.push_back(LeaderHeard{});
            return search(now);
        }
    } else if (now - lost_since >= patience()) {
        return leave(now,
                     unavailable(was_welcomed ? "the rendezvous has been lost for " +
                                                    to_text(now - lost_since) + ": " + sentence
                                              : sentence + " (--rdzv-endpoint, --join-timeout)"));
    } else if (call) {
        call = caller.next(now);
        return place_call(now);
    }
    connect(now);
}

void Machine::State::search(Time now) {
    call = caller.begin(now, lease.lease(), may_lead());
    place_call(now);
}

// Makes the call, or waits for its time.
void Machine::State::place_call(Time now) {
    welcomed = false;
    lease.disconnected();
    if (!call) return connect(now);
    if (now - lost_since >= patience())
        return leave(now, unavailable("no leader has been found for " + to_text(now - lost_since) +
                                      " (--join-timeout)"));
    // Its own turn, but it may not lead: nobody is to be called just now.
    if (call->from <= now && call->peer.node == config.node && !call->lead) call = caller.next(now);
    call_at = call->from > now ? call->from : kNever;
    if (call_at != kNever) return;
    if (call->lead) {
        note(Note::Level::warn, "no leader is heard; this node leads now");
        effects.push_back(Lead{{config.node, config.offer.address, config.offer.service_port}});
    }
    effects.push_back(Connect{
        .deadline = call->until,
        .hello = {config.run_id, config.node, config.version, config.requeue, config.limits},
        .address = call->peer.address,
        .port = call->peer.port,
        .once = true,
        .self = call->lead});
}

void Machine::State::on_elsewhere(Time now, const rendezvous::Elsewhere& elsewhere) {
    if (!caller.order().empty()) {
        if (!call) {
            lost_since = now;
            call = caller.begin(now, lease.lease(), may_lead());
        }
        call = caller.elsewhere(now, elsewhere);
        return place_call(now);
    }
    connect(now);
    auto& asked = std::get<Connect>(effects.back());
    asked.address = elsewhere.address;
    asked.port = elsewhere.port;
    if (!elsewhere.address.empty()) return;
    effects.pop_back();  // "wait"
    call_at = now + share(lease.lease(), Caller::kWait);
}

// While it searches, a stranger on a port that once was one of ours is passed over.
void Machine::State::on_refused(Time now, const rendezvous::Refused& said) {
    if (call) {
        call = caller.next(now);
        return place_call(now);
    }
    refused = true;
    welcomed = false;
    leave(now, unavailable("the rendezvous refused this node: " + said.sentence));
}

void Machine::State::check_link(Time now) {
    if (welcomed && lease.next_beat() != kNever &&
        now - lease.silent_since() >= share(lease.lease(), LeaseMember::kSilence))
        link_lost(now, "no answer for " + to_text(now - lease.silent_since()));
}

void Machine::State::heard_leader() {
    if (caller.order().empty() || leads()) return;
    if (!caller.leader()->address.empty()) effects.push_back(LeaderHeard{*caller.leader()});
}

void Machine::State::on_ledger_found(bool found) {
    if (found && !ledger_found && config.may_lead)
        note(Note::Level::debug, "the leader's ledger is read on this node, too: it can take over");
    ledger_found = found;
}

}  // namespace ddprun::agent
