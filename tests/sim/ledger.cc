// The model of a ledger behind a network file system. All times are shares of the lease: reads and
// creates take 0.0005 to 0.01, and stalls and lost answers come on top.
#include "tests/sim/ledger.h"

#include <algorithm>

namespace ddprun::sim {

using rendezvous::LedgerCreated;
using rendezvous::LedgerEntry;
using rendezvous::LedgerRead;

const LedgerEntry* VirtualLedger::find(Generation generation) const {
    for (const LedgerEntry& entry : entries_)
        if (entry.makes_generation() && entry.assignment.generation == generation) return &entry;
    return nullptr;
}

const LedgerEntry* VirtualLedger::end() const {
    if (entries_.empty() || !entries_.back().end()) return nullptr;
    return &entries_.back();
}

// Stalls may overlap or touch, so the search begins again after each one.
Time VirtualLedger::ready(int host, Time when) const {
    for (bool again = true; again;) {
        again = false;
        for (const auto& [where, begin, end] : stalls_)
            if ((where < 0 || where == host) && begin <= when && when < end) {
                when = end;
                again = true;
            }
    }
    return when;
}

void VirtualLedger::forget() {
    entries_.clear();
    written_.clear();
    visible_.clear();
}

void VirtualLedger::vanish(int which) {
    if (entries_.size() > 1) vanished_.insert(entries_[which % (entries_.size() - 1)].number);
}

void VirtualLedger::read(int host, EntryNumber from, Answer answer) {
    const Time when =
        ready(host, clock_.now()) + random_.span(share(lease_, 0.0005), share(lease_, 0.01));
    if (hidden_from_.contains(host) || vanished_.lower_bound(from) != vanished_.end()) {
        clock_.at(when, [answer = std::move(answer)] {
            answer(rendezvous::LedgerUnread{"an entry has vanished, or the folder is another one"});
        });
        return;
    }
    // A cached folder of a network file system shows an older state. Entries of an older state are
    // still true: the list only ends too early.
    const Duration age = random_.chance(0.3) ? random_.span({}, stale_) : Duration{};
    clock_.at(when, [this, from, age, answer = std::move(answer)] {
        LedgerRead read;
        for (std::size_t i = 0; i < entries_.size(); ++i)
            if (entries_[i].number >= from && written_[i] + age <= clock_.now())
                read.entries.push_back(entries_[i]);
        answer(read);
    });
}

// The highest restart count is looked for. Like the file `allocation` of a real folder, it is
// found when the create of its writer returns, and then at once.
void VirtualLedger::look(int host, const rendezvous::LookLedger& look, Answer answer) {
    const Time served =
        ready(host, clock_.now()) + random_.span(share(lease_, 0.0005), share(lease_, 0.01));
    const Duration age = old_looks_ ? share(lease_, 3) : Duration{};
    clock_.at(served, [this, host, look, age, answer = std::move(answer)] {
        rendezvous::LedgerLooked looked{look.number, -1};
        if (hidden_from_.contains(host)) looked.newest.reset();
        for (std::size_t i = 0; i < entries_.size(); ++i)
            if (looked.newest && visible_[i] != kNever && visible_[i] + age <= clock_.now())
                looked.newest = std::max(*looked.newest, entries_[i].requeue);
        const Time when =
            ready(host, clock_.now()) + random_.span(share(lease_, 0.0005), share(lease_, 0.01));
        clock_.at(when, [answer, looked] { answer(looked); });
    });
}

void VirtualLedger::create(int host, LedgerEntry entry, Answer answer) {
    const Duration quick = random_.span(share(lease_, 0.0005), share(lease_, 0.01));
    Time applied = ready(host, clock_.now()) + quick;
    // In a stall the request may already be on its way: it is applied at once, and only the answer
    // stalls.
    if (random_.chance(0.5)) applied = clock_.now() + quick;
    if (hidden_from_.contains(host) || vanished_.contains(entry.number)) {
        clock_.at(applied, [answer = std::move(answer), entry] {
            answer(LedgerCreated{LedgerCreated::Outcome::failed, entry, "it has vanished"});
        });
        return;
    }
    if (random_.chance(lost_answers_)) {
        // The answer is "failed". But the create was applied, or will be applied later, or never.
        // The machine cannot know which, and must try again with the same entry.
        const int fate = random_.below(3);
        const Time answered = clock_.now() + random_.span(quick, share(lease_, 0.3));
        if (fate == 1) applied = answered + random_.span({}, share(lease_, 0.5));
        if (fate != 2) clock_.at(applied, [this, entry] { apply(entry); });
        clock_.at(answered, [answer = std::move(answer), entry] {
            answer(LedgerCreated{LedgerCreated::Outcome::failed, entry, "the file system is away"});
        });
        return;
    }
    // The file system has lost its first answer and asked again by itself. Then the create that won
    // is answered with "exists", and the machine must recognize its own entry by the random number.
    const bool repeated = random_.chance(lost_answers_);
    clock_.at(applied, [this, host, entry, repeated, answer = std::move(answer)] {
        LedgerCreated created = apply(entry);
        if (repeated && created.outcome == LedgerCreated::Outcome::won)
            created.outcome = LedgerCreated::Outcome::lost;
        const Time when =
            ready(host, clock_.now()) + random_.span(share(lease_, 0.0005), share(lease_, 0.01));
        const auto number = static_cast<std::size_t>(entry.number.value);
        if (number < entries_.size() && entries_[number].leader == entry.leader)
            visible_[number] = std::min(visible_[number], when);
        clock_.at(when, [answer, created] { answer(created); });
    });
}

LedgerCreated VirtualLedger::apply(const LedgerEntry& entry) {
    const auto size = static_cast<std::int64_t>(entries_.size());
    // A leader proposes the entry that follows the newest one it has read. So a gap is a bug of the
    // machine.
    if (entry.number.value > size) {
        violation_("entry " + std::to_string(entry.number.value) + " leaves a gap in the ledger");
        return {LedgerCreated::Outcome::failed, entry, "a gap"};
    }
    // Mutation::create_overwrites.
    if (entry.number.value < size && overwrites_) {
        entries_[entry.number.value] = entry;
        return {LedgerCreated::Outcome::won, entry, ""};
    }
    if (entry.number.value < size) {
        const LedgerEntry& there = entries_[entry.number.value];
        const bool own = there.random == entry.random;
        return {own ? LedgerCreated::Outcome::won : LedgerCreated::Outcome::lost, there, ""};
    }
    if (end() && !rendezvous::continues(*end(), entry.requeue))
        violation_("an entry follows the end of the job");
    if (!entries_.empty() && entries_.back().requeue > entry.requeue)
        violation_("an older allocation writes after a newer one");
    entries_.push_back(entry);
    written_.push_back(clock_.now());
    visible_.push_back(kNever);
    appended_(entries_.back());
    return {LedgerCreated::Outcome::won, entry, ""};
}

}  // namespace ddprun::sim
