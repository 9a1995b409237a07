// The allocations of one job: a requeue begins a new one, perhaps while the old one still trains
// (PROTOCOL.md, rule 26). Part of the rendezvous machine.
#include <utility>

#include "rendezvous/machine/machine_state.h"

namespace ddprun::rendezvous {

// No generation of this allocation is in the ledger. An earlier one may be.
bool MachineState::begins_allocation() const {
    return !top() || top()->requeue < config.requeue || top()->allocation();
}

// An earlier allocation made the newest generation, and nothing proves that it has ended: Slurm
// requeues a job when it cannot reach a node, also if the node still trains.
bool MachineState::earlier_may_train() const {
    if (!begins_allocation()) return false;
    if (!top()) return config.earlier_unrecorded;
    if (const auto* begins = top()->allocation()) return begins->awaits;
    return !top()->end();
}

// The wait counts from this leader's own entry, since only that one was certainly seen by who looks
// from then on.
bool MachineState::may_begin(Time now) const {
    return !earlier_may_train() || now > allocation.safe_after(limits().times);
}

// Where workers of an earlier allocation may run, the entry is due at once. Else it only tells
// other leaders who leads: two that do not know each other meet by it (rule 11). So it costs
// nothing in a job whose nodes come at once. If another leader has written it, this one asks that
// one first.
bool MachineState::owes_allocation(Time now) {
    if (!begins_allocation() || !active.ledger_lasts || single_without_past() ||
        allocation.is_recorded() || (end.is_decided() && !earlier_may_train()))
        return false;
    const bool others = top() && top()->allocation() && top()->requeue == config.requeue;
    if (earlier_may_train() && !others) return true;
    const Time due = gathering.since() + share(lease(), others ? kClaimsAgain : kClaimsAfter);
    if (now < due) wake_at(due);
    return now >= due;
}

// A job of one node, of which nothing earlier can run: there is nobody to tell.
bool MachineState::single_without_past() const {
    return single() && !top() && !earlier_may_train();
}

void MachineState::propose_allocation(Time now) {
    LedgerEntry entry;
    entry.act = BeginsAllocation{earlier_may_train()};
    if (top()) entry.assignment = top()->assignment;
    propose(now, std::move(entry));
}

void MachineState::allocation_recorded(Time now) {
    allocation.recorded(now);
    if (!earlier_may_train()) return;
    claim.count_as_over();
    note(Note::Level::warn,
         "an earlier allocation of this job has recorded no end, so its workers may still run; the "
         "first generation of this one begins in " +
             to_text(allocation.safe_after(limits().times) - now) +
             " (three leases, --requeue-wait)");
}

// A stop ends the wait. The end is not recorded: to the next allocation it would say that nothing
// of an earlier one runs any more. Only an end that puts the job back into the queue must be
// recorded.
void MachineState::await_earlier(Time now) {
    // The last call runs meanwhile.
    if (gathering.may_be_enough())
        gathering.counted(now, count_candidates(now), limits().min_nodes);
    if (!allocation.is_recorded()) return;  // owes_allocation() says when it is due
    if (!end.is_decided() || end.requeues())
        return wake_at(allocation.safe_after(limits().times) + Duration{1});
    end.complete(now, config.to_day, facts);
    close(now);
}

// ---- an allocation that may be followed by another

// Only Slurm starts a job again. A rendezvous outside of the job is called by both allocations.
bool MachineState::watches_allocations() const {
    return config.in_slurm && active.ledger_lasts && !config.outside;
}

bool MachineState::may_grant(Time now) const {
    return !watches_allocations() || watch.may_grant(now, lease());
}

void MachineState::look_for_newer(Time now) {
    if (!watches_allocations()) return;
    if (const auto number = watch.looks(now, lease())) look(*number);
    wake_at(watch.looks_at(lease()));
}

void MachineState::look(std::int64_t number) {
    out.add(LookLedger{number, EntryNumber{claim.entry().value + 1}});
}

void MachineState::on_looked(Time now, const LedgerLooked& looked) {
    if (phase == Phase::closed) return;
    if (looked.newest && *looked.newest > config.requeue) return superseded(now, *looked.newest);
    if (!looked.newest) return unverified_failed(now, looked.number);
    if (!watch.answered(looked.number) || !unverified) return;
    ledger.was_answered();
    const LedgerEntry entry = *std::exchange(unverified, std::nullopt);
    own_entry_stands(now, entry);
}

// Nobody knows whether the entry may still be built on. It is proposed again, found, and looked at
// again.
void MachineState::unverified_failed(Time now, std::int64_t number) {
    if (!watch.answered(number) || !unverified) return;
    unverified.reset();
    ledger.was_answered();
    phase = Phase::gathering;
    ledger_failed(now, "it does not answer");
}

// A newer allocation has begun. It waits until the workers of this one have stopped.
void MachineState::superseded(Time now, int newest) {
    const std::string sentence =
        "restart " + std::to_string(newest) +
        " of this job has begun in another allocation, so this one (restart " +
        std::to_string(config.requeue) + ") ends";
    unverified.reset();
    if (end.is_decided() && config.outside) return;  // its nodes call again and again
    interrupt(now, {{}, sentence}, Note::Level::warn);
    end.decide(ended(Verdict::work_left, kWorkLeftCode, sentence));
    // Outside of the job the newer allocation has no ledger of its own yet. It gets one when this
    // end is recorded, and so when the workers of this one have stopped.
    if (config.outside) return;
    end.complete(now, config.to_day, facts);
    close(now);
}

}  // namespace ddprun::rendezvous
