// Handles the answers of the ledger, and decides what to do while it does not answer. Part of the
// rendezvous machine.
#include "rendezvous/machine/machine_state.h"

namespace ddprun::rendezvous {

void MachineState::ask_ledger(Time now, Effect effect) {
    ledger.asks(now);
    out.add(std::move(effect));
}

void MachineState::on_read(Time now, const LedgerRead& read) {
    // A read that was asked before the create may be older than the entry that is being created.
    if (phase == Phase::creating || phase == Phase::ending || phase == Phase::closed) return;
    ledger.was_read(now);
    if (phase == Phase::reading) {
        phase = Phase::gathering;
        gather_anew(now);
    }
    if (!read.entries.empty() && (!top() || read.entries.back().number > top()->number))
        adopt(now, read.entries.back());
}

void MachineState::on_unread(const LedgerUnread& unread) {
    if (ledger.was_not_read(unread.sentence))
        note(Note::Level::warn, "cannot read the ledger: " + unread.sentence + "; trying again");
}

void MachineState::on_created(Time now, const LedgerCreated& created) {
    if (phase != Phase::creating && phase != Phase::ending) return;
    const bool ours = created.entry.leader == active.identity;
    // The answer to a create of an earlier activation says nothing about the question of this one.
    if (created.outcome == LedgerCreated::Outcome::won && !ours) return;
    ledger.was_answered();
    phase = Phase::gathering;
    if (created.outcome == LedgerCreated::Outcome::failed)
        return ledger_failed(now, created.sentence);
    ledger.was_created();
    if (!ours) {
        note(Note::Level::warn, "ledger entry " + std::to_string(created.entry.number.value) +
                                    " was written by " + created.entry.leader.name +
                                    "; continuing from it");
        return adopt(now, created.entry);
    }
    // An earlier try may have written it, and only the answer was lost. It is ours all the same.
    // But a newer allocation may have begun since.
    if (watches_allocations() && !watch.is_fresh(created.entry.random, now, lease())) {
        phase = Phase::creating;
        unverified = created.entry;
        ledger.asks(now);
        return look(watch.ask(now));
    }
    own_entry_stands(now, created.entry);
}

void MachineState::own_entry_stands(Time now, const LedgerEntry& entry) {
    claim.recorded(entry);
    record.stands(entry);
    phase = Phase::gathering;
    if (top()->allocation()) return allocation_recorded(now);
    if (!top()->end()) return on_won(now);
    if (top()->end()->requeue && end.requeues()) {  // nobody has withdrawn it meanwhile
        phase = Phase::ending;
        stop.requeues();
        out.add(Requeue{facts.reach() == Reach::progressed});
        return;
    }
    on_requeued(now);
}

// While no end is decided, ledger_is_silent() limits how long this goes on.
void MachineState::ledger_failed(Time now, const std::string& sentence) {
    if (ledger.was_not_created(now, sentence, lease()))
        note(Note::Level::error, "cannot write the ledger: " + sentence + "; trying again");
    if (end.is_decided() && ledger.end_is_unrecorded(now, lease())) {
        end.complete(now, config.to_day, facts);
        close(now);
    }
}

// A leader that cannot propose reads the ledger once per lease, since its last read may have been
// stale.
void MachineState::look_up_again(Time now) {
    if (!config.succession || ledger.waits() || phase != Phase::gathering) return;
    if (ledger.reads_again(now, lease()))
        ask_ledger(now, ReadLedger{EntryNumber{top() ? top()->number.value + 1 : 0}});
    wake_at(ledger.reads_again_at(lease()));
}

// PROTOCOL.md, rule 11: a leader whose ledger does not answer lets another node try, unless it
// holds a generation or only has the end to record. If the ledger answers no node, the job ends at
// the join timeout.
bool MachineState::ledger_is_silent(Time now) {
    const Time since = ledger.silent_since();
    if (since == kNever || holding() || end.is_decided()) return false;
    const Time unanswered = ledger.unanswered_since();
    const Time give_up = unanswered + limits().times.join_timeout;
    if (now > give_up) {
        end.decide(unavailable("the ledger has been unavailable for " + to_text(now - unanswered) +
                               " (--join-timeout): " + ledger.why()));
        end.complete(now, config.to_day, facts);
        close(now);
        return true;
    }
    wake_at(give_up + Duration{1});
    if (!config.succession) return false;
    const Time until = since + share(lease(), kLedgerSilent);
    if (now < until) {
        wake_at(until);
        return false;
    }
    const std::optional<Peer> next = Successors::next(order(), active.self.node, roster);
    if (!next) return false;
    ledger.yields(now);
    yield(now, *next, share(lease(), kRest),
          "the ledger has been unavailable for " + to_text(now - since));
    return true;
}

}  // namespace ddprun::rendezvous
