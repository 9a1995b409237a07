// Finds the first failure of a generation, and keeps the later ones as its consequences
// (PROTOCOL.md, rule 14). Pure.
//
// Reports come from many nodes, in any order and perhaps twice. Each says how long ago its worker
// died, by the clock of its own node. The leader subtracts that age from the moment of arrival, so
// all failures are on the leader's clock. The error is the delay of the message: well below a
// millisecond in a quiet network, and never in the order of two deaths on one node. The first
// failure is fixed only when the next generation or the end is decided, so a late report of an
// early death still counts.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rendezvous/model/messages.h"

namespace ddprun::rendezvous {

class FirstFailure {
  public:
    // Adds a failure. Returns true if it is new. Repeating a failure of the same rank changes
    // nothing, except that it may supply missing output lines.
    bool take(const std::string& node, const WorkerOutcome& outcome, Time at);

    // Adds to the outcome of a generation that hangs what a worker has written at its end: `who` it
    // is, its stack and last lines.
    void add_to_hang(const std::string& who, const WorkerOutcome& wrote);

    explicit operator bool() const { return !all_.empty(); }
    const WorkerOutcome& outcome() const { return all_.front().outcome; }
    const std::string& node() const { return all_.front().node; }
    Time at() const { return all_.front().at; }
    std::size_t count() const { return ranks_.size(); }
    // The failures in the form of a message: ordered by time, with their ages.
    std::vector<NodeFailure> told(Time now) const;
    // Fills in the first failure, its node and the consequences.
    void tell(Ending& ending) const;
    // Another event at time `cause` was the first cause: all failures become consequences.
    void tell_as_consequences(Ending& ending, Time cause) const;

  private:
    void tell_from(std::size_t first, Time cause, Ending& ending) const;

    struct One {
        std::string node;
        WorkerOutcome outcome;
        Time at;
    };
    // By time; failures beyond kConsequencesTold are only counted.
    std::vector<One> all_;
    std::set<int> ranks_;
};

}  // namespace ddprun::rendezvous
