// What restarts cost: the time from a generation's failure to the first progress of the next one,
// in phases that follow each other without a gap, so that their sum is the time lost.
//
//     failure ─detected─ told ─ stopped ─ gone ─ met ─ started ─ contact ─ progress
//              the leader  the last node of the old     of the new generation
//
// All moments are on the leader's clock: a node says how long ago it passed one, and the leader
// takes that from when it hears it, so that nobody's wall clock matters. Of what is heard again the
// earliest is the most exact. What nobody says takes no time: workers that report nothing train, as
// far as can be known, from their last mark on. A leader that follows another begins with what the
// newest entry adds up, and with the first node that had stopped.
//
// Pure; owned by the rendezvous machine.
#pragma once

#include <map>

#include "rendezvous/model/messages.h"

namespace ddprun::rendezvous {

class RestartWatch {
  public:
    // The newest entry is this generation's. `made`: when it could be made; kNever: another made
    // it.
    void began(Generation generation, Time made, const RestartTotals& totals);
    // It has failed at `since`; the leader knows it now.
    void ended(Time since, Time now);
    void heard(const NodeId& node, const Marks& marks, Time now);

    // What the entry that is proposed now says. `restart`: it makes a generation that follows
    // another; else it is the end. A takeover repeats the sums, for its generation goes on.
    RestartRecord record(Time now, bool restart) const;
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
    std::map<NodeId, std::array<Time, kRestartPhases>> heard_;
};

// "3 restarts, 4.2 s lost: 0.1 s detected, 12 ms told, …", and "longest: generation 2, 1.9 s in
// gone (gpu07)"; nothing where there was no restart.
std::vector<std::string> summary_of(const RestartTotals& totals);

}  // namespace ddprun::rendezvous
