// Which failure of a generation was the first, and which came after it, as consequences. Pure.
//
// Reports come from many nodes, in any order and perhaps twice; each names how long ago its worker
// died by its own node's clock, so the leader places all of them on its own: moment of receipt less
// that age. What is wrong in it is the way of the message, well below a millisecond in a quiet
// network, and never in the order of two deaths on one node. Who counts first is decided only when
// the generation is followed, so a late report of an early death still counts.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rendezvous/model/messages.h"

namespace ddprun::rendezvous {

class FirstFailure {
  public:
    // True if it is news. Repeating one of the same rank changes nothing, but that its last lines
    // may have been missing.
    bool take(const std::string& node, const WorkerOutcome& outcome, Time at);

    explicit operator bool() const { return !all_.empty(); }
    const WorkerOutcome& outcome() const { return all_.front().outcome; }
    const std::string& node() const { return all_.front().node; }
    Time at() const { return all_.front().at; }
    std::size_t count() const { return ranks_.size(); }
    // As a message has them: by time, with their age.
    std::vector<NodeFailure> told(Time now) const;
    // Sets first failure, its node and the consequences.
    void tell(Ending& ending) const;
    // Something else, at that time, was the first cause: all of them are its consequences.
    void tell_as_consequences(Ending& ending, Time cause) const;

  private:
    void tell_from(std::size_t first, Time cause, Ending& ending) const;

    struct One {
        std::string node;
        WorkerOutcome outcome;
        Time at;
    };
    std::vector<One> all_;  // by time; what comes late behind kConsequencesTold is only counted
    std::set<int> ranks_;
};

}  // namespace ddprun::rendezvous
