// The ledger of a virtual job as its processes reach it: the virtual one, or for the first start of
// a job of one node the product's own that is written behind it.
#include "tests/sim/world.h"

namespace ddprun::sim {

// Carries out what asks the ledger. False: the effect is another one.
bool World::ask_ledger(Process& process, const rendezvous::Effect& effect) {
    Behind* const behind = process.behind.get();
    // The answers come to a process that may be frozen by then, or dead.
    const auto answer = [this, &process](const rendezvous::Event& event) {
        deliver(process, false, [this, &process, event] { step_service(process, event); });
    };
    if (const auto* read = std::get_if<rendezvous::ReadLedger>(&effect)) {
        if (behind)
            behind->read(read->from, answer);
        else
            ledger_.read(process.host, read->from, answer);
    } else if (const auto* create = std::get_if<rendezvous::CreateEntry>(&effect)) {
        invariants_.proposed(process, create->entry);
        const auto mutated = [this, answer, asked = create->entry](const rendezvous::Event& said) {
            answer(mutate(asked, said));
        };
        if (behind)
            behind->create(create->entry, mutated);
        else
            ledger_.create(process.host, create->entry, mutated);
    } else if (const auto* look = std::get_if<rendezvous::LookLedger>(&effect)) {
        if (mutates(Mutation::leaders_never_look)) return true;
        if (behind)
            behind->look(*look, answer);
        else
            ledger_.look(process.host, *look, answer);
    } else {
        return false;
    }
    return true;
}

void World::write_behind(Process& process) {
    const auto run = [this, &process](const std::function<void()>& action) {
        deliver(process, false, action);
    };
    process.behind = std::make_unique<Behind>(
        ledger_, process.host, clock_, lease(1), run,
        [this, &process](const Note& note) { trace(host_of(process), note.sentence); });
    clock_.after(*config_.folder_opens,
                 [run, &behind = *process.behind] { run([&behind] { behind.open(); }); });
}

// A job of one node may begin before its ledger has an entry. If a newer allocation has written one
// by then, that one begins with the same number.
void World::appended(const rendezvous::LedgerEntry& entry) {
    if (entry.makes_generation() && entry.requeue > 0) {
        const Generation generation = entry.assignment.generation;
        started_.erase(generation);
        all_started_.erase(generation);
        broken_.erase(generation);
        stuck_.erase(generation);
    }
    invariants_.appended(entry);
}

const rendezvous::LedgerEntry* World::recorded(const Process& process,
                                               Generation generation) const {
    if (process.behind && process.behind->first() &&
        process.behind->first()->assignment.generation == generation)
        return &*process.behind->first();
    return ledger_.find(generation);
}

}  // namespace ddprun::sim
