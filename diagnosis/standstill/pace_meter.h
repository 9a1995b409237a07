// How much of its time each worker of a node is outside of collectives, over a minute. In a job
// whose ranks wait for one slow rank, that one is hardly ever inside, and the others mostly. Pure.
//
// Samples come about once a second, so a share is known to some 6 %.
#pragma once

#include <vector>

#include "diagnosis/standstill/worker_sample.h"
#include "rendezvous/model/standstill.h"

namespace ddprun::agent {

class PaceMeter {
  public:
    // One look at all workers, by local rank: always as many. True: a minute is full, and pace() is
    // a new one.
    bool sampled(const std::vector<WorkerSample>& workers);
    // In the last full minute; nothing known before, or when a worker could not be seen.
    const rendezvous::Pace& pace() const { return pace_; }

  private:
    std::vector<int> outside_;  // samples, by local rank
    int samples_ = 0;
    bool sees_all_ = true;
    rendezvous::Pace pace_;
};

}  // namespace ddprun::agent
