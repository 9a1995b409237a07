// What operators are promised, and what they have decided for the rest of a job (invariants.h).
#include <algorithm>

#include "tests/sim/invariants.h"
#include "tests/sim/world.h"

namespace ddprun::sim {

using rendezvous::LedgerEntry;

// A leader that is lost before the next entry takes a drain with it: the operator is told. Limits
// are facts of the generation, which its nodes tell the next leader.
void Invariants::stepped(const Process& service, const rendezvous::Event& event,
                         const rendezvous::Effects& effects) {
    if (!service.leads()) {
        drained_.erase(service.id.incarnation);
        promised_.erase(service.id.incarnation);
        return;
    }
    const auto* asked = std::get_if<rendezvous::Operated>(&event);
    if (!asked) return;
    for (const rendezvous::Effect& effect : effects) {
        const auto* answered = std::get_if<rendezvous::Answered>(&effect);
        if (!answered || answered->answer != rendezvous::OperatorAnswer::done) continue;
        if (const auto* drain = std::get_if<rendezvous::DrainNode>(&asked->action))
            drained_[service.id.incarnation].insert(drain->node);
        if (const auto* set = std::get_if<rendezvous::SetLimits>(&asked->action)) {
            Promise& promise = promised_[service.id.incarnation];
            promise.name = service.id.name;
            rendezvous::OperatorLimits& promised = promise.limits;
            promised.min_nodes = set->limits.min_nodes;
            promised.max_nodes = set->limits.max_nodes;
            if (set->limits.max_restarts) promised.max_restarts = set->limits.max_restarts;
            promise.place = given_.size();
            given_.push_back(promised);
        }
    }
}

void Invariants::asked_for_snapshot(const Process& process, const agent::SnapshotHint& hint) {
    std::int64_t& newest = newest_request_[{process.id.incarnation, hint.generation}];
    if (hint.asked.number <= newest)
        world_.violation(process.id.name + " asks its workers for a snapshot a second time");
    newest = hint.asked.number;
}

// The first entry of a leader has the limits that it has promised, or those that another one has
// promised later: it hears of them by its nodes.
void Invariants::check_promise(const Process& leader, const LedgerEntry& entry) {
    const auto promise = promised_.find(leader.id.incarnation);
    if (promise == promised_.end()) return;
    const auto are_kept = [&](const rendezvous::OperatorLimits& set) {
        return set.min_nodes == entry.limits.min_nodes && set.max_nodes == entry.limits.max_nodes &&
               (!set.max_restarts || set.max_restarts == entry.limits.max_restarts);
    };
    if (std::none_of(given_.begin() + static_cast<std::ptrdiff_t>(promise->second.place),
                     given_.end(), are_kept))
        world_.violation(leader.id.name + " forgets the limits that it has promised");
}

// What operators have set stays set over all leaders, and fits.
void Invariants::check_limits(const LedgerEntry& entry) {
    const auto& entries = world_.ledger().entries();
    const rendezvous::OperatorLimits before =
        entries.size() > 1 ? entries[entries.size() - 2].limits : rendezvous::OperatorLimits{};
    const rendezvous::OperatorLimits& now = entry.limits;
    if ((before.min_nodes && !now.min_nodes) || (before.max_restarts && !now.max_restarts))
        world_.violation("limits were set, and are not any more");
    if (now.min_nodes.has_value() != now.max_nodes.has_value() || now.min_nodes > now.max_nodes)
        world_.violation("limits are recorded that do not fit");
    std::erase_if(promised_,
                  [&](const auto& each) { return each.second.name == entry.leader.name; });
}

void Invariants::assigned(const Process& leader, const std::string& host) {
    const auto drained = drained_.find(leader.id.incarnation);
    if (drained != drained_.end() && drained->second.contains(host))
        world_.violation(leader.id.name + " gives a place to " + host +
                         ", which it has promised to take out");
}

}  // namespace ddprun::sim
