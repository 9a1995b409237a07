// Where the time of a job went, over all its allocations. Pure.
//
// Each ledger entry has the sums from the job's begin to itself, so that the next leader, the next
// allocation and a reader of the newest entry go on with them. The time between two entries is
// shared out when the second one is proposed: what the restart took and what the start before it
// took is measured (restart_times.h), and the rest is training. The parts add up exactly. A job
// that reports its first snapshot has lost all training of the generations before. And if a program
// reports progress, a generation without any has not trained: it was still importing or setting up.
//
// What saving snapshots took from training is a part of its own where the program tells it.
//
// A takeover shares out nothing: its generation goes on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rendezvous/rules/generation_facts.h"

namespace ddprun::rendezvous {

// What is known when an entry is proposed. Points in time are since 1970.
struct TimeFacts {
    Duration now{}, began{};  // of the leader's process
    // How long ago the newest generation failed or was complete.
    Duration over{};
    // The training until then that no snapshot has kept, if none was before: Duration::max().
    Duration unsaved = Duration::max();
    Duration saving{};   // what its snapshots have taken from training
    bool saves = false;  // its workers have reported a snapshot
    // How far its first worker has got: started, contact or progress. Nothing: nobody has run it.
    std::optional<RestartPhase> reached = RestartPhase::progress;
};

// The record of `next`, which has everything else already. `newest`: the entry before it; null: it
// is the first one of the job.
TimeRecord time_until(const LedgerEntry& next, const LedgerEntry* newest, const TimeFacts& facts);

// For people, at the end of a job: "of 3 h 14 m, 2 h 58 m were training that is kept (92 %)", where
// the rest went, and "restarts by cause: …". Nothing where nothing is recorded.
std::vector<std::string> time_lines(const LedgerEntry& last);

// The parts with their names, in the order of time_lines(): "training", "lost", …
struct TimePart {
    const char* name;
    const char* words;  // behind its duration, in a sentence
    Duration took;
};
std::vector<TimePart> parts_of(const TimeSpent& spent);

}  // namespace ddprun::rendezvous
