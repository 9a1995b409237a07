// Neighbours: a connection from each rank to the next one, in a ring, that carries nothing. When a
// process ends, its kernel closes its connections, so the ranks beside it learn at once that it is
// gone. (A GPU's network may never tell.)
//
// A rank that ends in order says so before. A host that loses its power is noticed by keep-alive
// probes, after some seconds. Thread: one at a time. Errors: timed_out, with the rank that did not
// come; unavailable; those of the store.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/system/unique_fd.h"
#include "trainer/worker/context.h"
#include "trainer/worker/store.h"

namespace ddprun::trainer {

class Neighbours {
  public:
    // Meets the rank before and the rank behind this one; blocks at most until `deadline`. A world
    // of one has none.
    using Time = std::chrono::steady_clock::time_point;
    static Result<Neighbours> connect(const Context& context, Store& store, Time deadline);

    // Descriptors that become readable when look() has something to see.
    std::vector<int> descriptors() const;

    // The rank that has gone without a word since the last call, or given up; -1: none. Does not
    // wait.
    int look();

    // Says that this rank ends in order.
    void leave();

    // Says that this rank gives up, which the ranks beside it take for a loss; where they have lost
    // another rank too, that one counts. Any thread.
    void give_up() const;

  private:
    struct Link {
        UniqueFd fd;
        int rank = -1;
        bool left = false;  // it has said that it ends in order
    };
    std::vector<Link> links_;
};

}  // namespace ddprun::trainer
