// Measures what restarts cost: the time from a generation's failure to the first progress of the
// next one. The phases follow each other without a gap, so their sum is the lost time.
//
//     failure ─detected─ told ─ stopped ─ gone ─ met ─ started ─ contact ─ progress
//              the leader  the last node of the old     of the new generation
//
// All times are on the leader's clock. A node says how long ago it passed a phase, and the leader
// subtracts that from the moment of arrival, so no wall clock matters. If a node repeats a mark,
// the earliest result is the most exact. A phase that no node reports takes no time: workers that
// report nothing count as training since their last mark. A new leader starts with the sums of the
// newest entry and with the first node that had stopped.
//
// Pure; owned by the rendezvous machine.
#pragma once

#include <optional>
#include <unordered_map>

#include "rendezvous/model/messages.h"
#include "rendezvous/model/node_hash.h"

namespace ddprun::rendezvous {

class RestartWatch {
  public:
    // The newest entry belongs to this generation. `made`: when it could be made; kNever: another
    // leader made it.
    void began(Generation generation, Time made, const RestartTotals& totals);
    // It failed at `since`, and the leader learned it `now`.
    void ended(Time since, Time now);
    void heard(const NodeId& node, const Marks& marks, Time now);

    // The record for the entry that is proposed now. `restart`: why the entry makes a generation
    // after another one; nothing: it is the end, or makes the first one. A takeover repeats the
    // sums only, because its generation goes on.
    RestartRecord record(Time now, std::optional<RestartCause> restart) const;
    // When the generation failed or was complete; `now`: nobody knows better.
    Time over_at(Time now) const;
    // How far the generation's first worker has got: started, contact or progress.
    std::optional<RestartPhase> reached() const;
    const RestartTotals& totals() const { return totals_; }

  private:
    struct Moment {
        Time at = kNever;
        std::string node;
    };
    Moment moment(RestartPhase phase) const;
    Time chain(RestartTimes& times, RestartPhase from, RestartPhase to, Time begin, Time end) const;

    Generation generation_ = kNoGeneration;
    Time made_ = kNever, failed_ = kNever, known_ = kNever;
    RestartTotals totals_;
    std::unordered_map<NodeId, std::array<Time, kRestartPhases>> heard_;
};

// "3 restarts, 4.2 s lost, most of it in starting the program"; empty where there was no restart.
std::string summary_of(const RestartTotals& totals);
// The phases behind it: "lost in restarts: 0.1 s detected, 12 ms told, …", and "longest: generation
// 2, 1.9 s in gone (gpu07)"; nothing where there was no restart.
std::vector<std::string> phases_of(const RestartTotals& totals);

}  // namespace ddprun::rendezvous
