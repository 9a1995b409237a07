// Deaths of workers that a stop by Slurm may have caused. Slurm signals workers and ddprun in any
// order. The node reports these deaths as failures only once it is clear that no stop comes.
//
// Pure; owned by the agent machine.
#pragma once

#include <utility>
#include <vector>

#include "rendezvous/model/model.h"

namespace ddprun::agent {

class WithheldFailures {
  public:
    using Failure = std::pair<rendezvous::WorkerOutcome, Time>;  // and when it was

    void add(rendezvous::WorkerOutcome outcome, Time at, Time now) {
        if (failures_.empty()) judged_at_ = now + rendezvous::kSignalPatience;
        failures_.emplace_back(std::move(outcome), at);
    }
    bool empty() const { return failures_.empty(); }
    Time judged_at() const { return judged_at_; }  // kNever: there are none
    // A stop came, and it was the cause of these deaths.
    void forget() { take(); }
    // No stop came: they are failures.
    std::vector<Failure> take() {
        judged_at_ = kNever;
        return std::exchange(failures_, {});
    }

  private:
    std::vector<Failure> failures_;
    Time judged_at_ = kNever;
};

}  // namespace ddprun::agent
