// Waiting: one wait for calls of MPI, which themselves never end when a rank is lost. Meanwhile it
// looks at the ranks beside this one, at what all ranks tell of failures, and at the time.
//
// Thread: the one that waits.
#pragma once

#include <mpi.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <vector>

#include "trainer/group/failure_story.h"
#include "trainer/group/neighbours.h"
#include "trainer/mpi/mpi_session.h"

namespace ddprun::trainer {

class Waiting {
  public:
    // What it looks at. All outlive the wait.
    struct Group {
        MpiSession& session;
        Neighbours& neighbours;
        FailureStory& story;
        const Context& context;
        const std::atomic<bool>& cut;  // by abort()
        std::chrono::milliseconds timeout;
    };

    // `operation`: what the program has called.
    Waiting(const Group& group, const Operation& operation);

    // Waits for all requests. Errors: timed_out; closed: a rank was lost, or a group has failed;
    // refused: another rank waits in another call; those of MpiSession::call().
    Result<void> wait(std::vector<MPI_Request>& requests);

    // The rank whose loss has ended the wait; -1: none.
    int lost() const { return lost_; }

  private:
    using Clock = std::chrono::steady_clock;
    std::optional<Error> trouble(Clock::time_point now);
    std::optional<Error> others_say();

    const Group group_;
    const Operation& operation_;
    const Clock::time_point begin_;
    Clock::time_point look_, ask_;  // when next
    bool asked_ = false;
    int lost_ = -1;
};

}  // namespace ddprun::trainer
