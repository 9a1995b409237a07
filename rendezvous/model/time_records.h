// What restarts have cost a job, and where its time went, as each ledger entry records it. Plain
// values, filled in by rules/restart_times.h and rules/time_spent.h.
#pragma once

#include <array>
#include <string>

#include "base/time.h"
#include "proto/ids.h"

namespace ddprun::rendezvous {

// The phases of a restart, in order. Each phase lasts until the moment that is named beside it.
enum class RestartPhase : int {
    detected,  // the leader knew that the generation had failed
    told,      // its last node knew
    stopped,   // its last worker had ended
    gone,      // the last keeper had verified that nothing is left
    met,       // the next generation could be made
    started,   // the last worker of that was started
    contact,   // the first of them called the store
    progress,  // the first of them reported progress
};
inline constexpr std::size_t kRestartPhases = 8;
inline constexpr std::array<const char*, kRestartPhases> kRestartPhaseNames = {
    "detected", "told", "stopped", "gone", "met", "started", "store contact", "progress"};
inline const char* to_string(RestartPhase phase) {
    return kRestartPhaseNames[static_cast<std::size_t>(phase)];
}

struct PhaseTime {
    Duration took{};
    std::string node;  // the last one that was waited for; empty: none
    bool operator==(const PhaseTime&) const = default;
};
using RestartTimes = std::array<PhaseTime, kRestartPhases>;

// Why a restart was made.
enum class RestartCause : int {
    worker,     // a worker failed
    hang,       // a worker hung
    node,       // a node was lost, or did not answer
    planned,    // a larger world, or an operator
    requeue,    // Slurm started the job again
    suspended,  // all nodes stood still
};
inline constexpr std::size_t kRestartCauses = 6;
inline constexpr std::array<const char*, kRestartCauses> kRestartCauseNames = {
    "worker", "hang", "node", "planned", "requeue", "suspended"};

// The sums over all restarts of a job so far.
struct RestartTotals {
    int restarts = 0;
    std::array<int, kRestartCauses> causes{};  // of the restarts
    std::array<Duration, kRestartPhases> took{};
    // The longest single phase, and the generation that the job waited for in it.
    PhaseTime longest;
    RestartPhase longest_phase = RestartPhase::detected;
    Generation longest_of = kNoGeneration;
    bool operator==(const RestartTotals&) const = default;
};

// The restart times in a ledger entry (restart_times.h).
struct RestartRecord {
    // The phases up to `met` belong to the restart that this entry makes. The phases from `started`
    // on belong to the start of the previous generation, whose entry was written before they were
    // known.
    RestartTimes times;
    RestartTotals totals;  // with these
    bool operator==(const RestartRecord&) const = default;
};

// Where the time of a job went (rules/time_spent.h).
struct TimeSpent {
    Duration waiting{};     // for nodes, or in Slurm's queue: no generation was under way
    Duration importing{};   // from a generation's entry until its first worker called the store
    Duration setting_up{};  // from there to its first progress
    Duration training{};    // from there to its failure or its end, but for what was lost
    Duration lost{};        // training that no snapshot has kept
    Duration saving{};      // what saving snapshots has taken from training, where that is told
    Duration restarting{};  // from a failure to the entry of the next generation, or the end
    Duration unknown{};     // a generation of an allocation that was lost: nobody knows when
    Duration all() const {
        return waiting + importing + setting_up + training + lost + saving + restarting + unknown;
    }
    bool operator==(const TimeSpent&) const = default;
};

// The same from the job's begin to a ledger entry. Times are since 1970, by the clocks of the
// leaders' hosts.
struct TimeRecord {
    Duration begun{};         // the first leader's process began; 0: not recorded
    Duration at{};            // the sums reach to here
    bool progresses = false;  // a worker has ever reported progress
    bool saves = false;       // or a snapshot
    TimeSpent spent;          // adds up to `at` - `begun`
    bool operator==(const TimeRecord&) const = default;
};

}  // namespace ddprun::rendezvous
