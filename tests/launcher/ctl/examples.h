// Jobs in each state, as a survey finds them.
#pragma once

#include "launcher/ctl/found_job.h"

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

}  // namespace ddprun::launcher
