// Jobs in each state, as a survey finds them.
#pragma once

#include "operator/ddpctl/found_job.h"
#include "rendezvous/ledger/ledger_contents.h"

namespace ddprun::launcher {

inline constexpr Duration kToday = std::chrono::hours{24 * 20000};  // a day in October 2024
inline constexpr Duration kDay = std::chrono::hours{24};

// A job that has begun generation 4 after 3 restarts, ten days ago. Its newest entry is two days
// old.
inline FoundJob running_job(const std::string& name = "lab.8812.0") {
    FoundJob job{name, ".ddprun/" + name};
    job.mark = 0xabc;
    job.newest.emplace();
    job.newest->assignment.generation = Generation{4};
    job.newest->restart.totals.restarts = 3;
    job.bytes = 20480;
    job.begun = kToday - 10 * kDay;
    job.written = kToday - 2 * kDay;
    return job;
}

inline FoundJob ended_job(const std::string& name, rendezvous::Verdict verdict, int code) {
    FoundJob job = running_job(name);
    job.newest->act = rendezvous::EndsJob{rendezvous::ended(verdict, code, "it ended")};
    return job;
}

inline FoundJob new_job(const std::string& name) {
    FoundJob job = running_job(name);
    job.newest.reset();
    job.written = {};
    return job;
}

inline FoundJob unreadable_job(const std::string& name) {
    FoundJob job = new_job(name);
    job.mark = 0;
    job.fault = "ledger folder .ddprun/" + name + " has a file that no ledger has: notes.txt";
    return job;
}

// ---- entries of a ledger, written so long after kToday

inline rendezvous::DatedEntry dated_entry(rendezvous::EntryAct act, Duration after) {
    rendezvous::DatedEntry dated{{}, kToday + after};
    dated.entry.act = std::move(act);
    dated.entry.leader.name = "n1";
    return dated;
}
// Of two nodes with two workers each.
inline rendezvous::DatedEntry dated_generation(int generation, Duration after) {
    rendezvous::DatedEntry dated = dated_entry(rendezvous::MakesGeneration{}, after);
    rendezvous::Assignment& made = dated.entry.assignment;
    made.generation = Generation{generation};
    for (const char* name : {"n1", "n2"}) {
        rendezvous::Member& member = made.members.emplace_back();
        member.node.name = name;
        member.offer.slots = 2;
        member.rank_offset = made.world_size;
        made.world_size += 2;
    }
    made.restarts = generation > 0 ? 1 : 0;
    made.max_restarts = 3;
    made.cause = "start";
    return dated;
}
inline rendezvous::DatedEntry dated_takeover(Duration after) {
    rendezvous::DatedEntry dated = dated_generation(1, after);
    dated.entry.act = rendezvous::TakesOver{};
    dated.entry.leader.name = "n2";
    return dated;
}
inline rendezvous::DatedEntry dated_allocation(Duration after) {
    rendezvous::DatedEntry dated = dated_entry(rendezvous::BeginsAllocation{true}, after);
    dated.entry.requeue = 1;
    return dated;
}
inline rendezvous::DatedEntry dated_end(Duration after) {
    return dated_entry(
        rendezvous::EndsJob{rendezvous::ended(rendezvous::Verdict::succeeded, 0, "all is well")},
        after);
}
// The generation before took so long to start, and the failure was detected so late.
inline rendezvous::DatedEntry with_phases(rendezvous::DatedEntry dated, Duration started,
                                          Duration detected) {
    auto& times = dated.entry.restart.times;
    times[static_cast<std::size_t>(rendezvous::RestartPhase::started)].took = started;
    times[static_cast<std::size_t>(rendezvous::RestartPhase::detected)].took = detected;
    return dated;
}

}  // namespace ddprun::launcher
