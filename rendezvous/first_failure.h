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

#include "rendezvous/model.h"

namespace ddprun::rendezvous {

class FirstFailure {
  public:
    // Repeating one of the same rank changes nothing.
    void take(const std::string& node, const WorkerOutcome& outcome, Time at);
    void reset() { *this = {}; }

    explicit operator bool() const { return !all_.empty(); }
    const WorkerOutcome& outcome() const { return all_.front().outcome; }
    const std::string& node() const { return all_.front().node; }
    Time at() const { return all_.front().at; }
    // Sets first failure, its node and the consequences.
    void tell(Ending& ending) const;

  private:
    struct One {
        std::string node;
        WorkerOutcome outcome;
        Time at;
    };
    std::vector<One> all_;  // by time; what comes late behind kConsequencesTold is only counted
    std::set<int> ranks_;
};

}  // namespace ddprun::rendezvous
