// Dispatches events to the sources that machine_state.h lists (machine.h).
#include "rendezvous/machine/machine.h"

#include <algorithm>
#include <utility>

#include "base/overload.h"
#include "rendezvous/machine/machine_state.h"
#include "rendezvous/model/durations.h"
#include "rendezvous/rules/lease_member.h"

namespace ddprun::rendezvous {

const char* to_string(Phase phase) {
    switch (phase) {
        case Phase::dormant:
            return "dormant";
        case Phase::reading:
            return "reading";
        case Phase::gathering:
            return "gathering";
        case Phase::creating:
            return "creating";
        case Phase::running:
            return "running";
        case Phase::ending:
            return "ending";
        case Phase::closed:
            return "closed";
    }
    return "unknown";
}

Machine::Machine(MachineConfig config, Time now)
    : state_(std::make_unique<MachineState>(std::move(config), now)) {}
Machine::~Machine() = default;
Machine::Machine(Machine&&) noexcept = default;
Machine& Machine::operator=(Machine&&) noexcept = default;

Effects Machine::step(Time now, const Event& event) {
    MachineState& s = *state_;
    s.due = s.out.wake();
    s.out.begin();
    if (s.phase == Phase::dormant) {
        s.while_dormant(now, event);
        return s.out.take();
    }
    s.watch.stepped(now, s.lease());
    s.expire(now);  // PROTOCOL.md, rule 5: before any other event
    std::visit(Overload{[&](const Came& e) { s.came(now, e); },
                        [&](const ConnectionLost& e) { s.roster.lost(e.session); },
                        [&](const LedgerRead& e) { s.on_read(now, e); },
                        [&](const LedgerUnread& e) { s.on_unread(e); },
                        [&](const LedgerCreated& e) { s.on_created(now, e); },
                        [&](const LedgerLooked& e) { s.on_looked(now, e); },
                        [&](const Called& e) { s.on_called(now, e); },
                        [&](const Requeued&) { s.on_requeued(now); },
                        [&](const OutOfService& e) { s.on_out_of_service(now, e); },
                        [&](const Operated& e) { s.on_operated(now, e); }, [](const Lead&) {},
                        [](const LeaderHeard&) {}, [](const Tick&) {}},
               event);
    if (s.phase != Phase::closed) s.lead(now);
    if (s.phase == Phase::closed) s.closed(now);  // this event may have closed it
    s.break_silence(now);
    return s.out.take();
}

Time Machine::next_deadline() const { return state_->out.wake(); }

bool Machine::leads() const { return state_->phase != Phase::dormant; }

Snapshot Machine::snapshot() const {
    const MachineState& s = *state_;
    Snapshot snapshot{.phase = s.phase,
                      .newest = s.newest(),
                      .entry = s.claim.entry(),
                      .over = s.claim.over(),
                      .held_until = s.holding() ? s.held()->lease.held_until() : kLongAgo,
                      .connected = {},
                      .restarts = s.record.restarts()};
    for (const auto& [id, node] : s.roster.nodes())
        if (node.connected()) snapshot.connected.push_back(id);
    return snapshot;
}

JobStatus Machine::status(Time now) const { return state_->status(now); }

const GenerationFacts& Machine::facts() const { return state_->facts; }

}  // namespace ddprun::rendezvous
