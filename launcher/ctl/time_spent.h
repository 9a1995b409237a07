// Where the time of a job went, as far as its ledger tells. Pure.
//
// An entry records how long the restart took that it makes, and how long the generation before it
// took to start (RestartRecord). What is left of the time between two entries is training. It
// includes the work that was lost since the last snapshot: no entry tells how much that was.
#pragma once

#include <vector>

#include "base/time.h"
#include "rendezvous/ledger/ledger_contents.h"

namespace ddprun::launcher {

struct TimeSpent {
    Duration waiting{};     // for nodes, or in Slurm's queue: no generation was under way
    Duration starting{};    // from a generation's entry to its first progress, as far as reported
    Duration training{};    // from there to its failure or its end
    Duration restarting{};  // from a failure to the entry of the next generation
    Duration unknown{};     // a generation of an allocation that was lost: nobody knows when
    Duration all() const { return waiting + starting + training + restarting + unknown; }
    bool operator==(const TimeSpent&) const = default;
};

// From the ledger's begin to the newest entry; the parts add up to exactly that. Both times are
// since 1970. What a generation that has not ended does now is not in it.
TimeSpent time_spent(const std::vector<rendezvous::DatedEntry>& entries, Duration begun);

}  // namespace ddprun::launcher
