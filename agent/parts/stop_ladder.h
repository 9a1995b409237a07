// First signal, grace, SIGKILL: which signal a stop sends now, and when to look again. Pure.
//
//     first signal ──grace, or cut_by if that is earlier──▶ SIGKILL ──▶ done (nothing more to send)
//
// The ladder knows nothing about workers. Its user stops asking when all workers are gone.
#pragma once

#include <optional>

#include "base/time.h"

namespace ddprun::agent {

class StopLadder {
  public:
    // The first signal is due at `started`, SIGKILL after `grace`, but never later than `cut_by`
    // (the lease's deadline). A cut_by that has passed, a grace of zero, or SIGKILL as first
    // signal: SIGKILL at once.
    StopLadder(int first_signal, Time started, Duration grace,
               std::optional<Time> cut_by = std::nullopt);

    // The signal to send now, if one is due; each is given once.
    std::optional<int> step(Time now);
    // Call step() no later than this; kNever: there is nothing more to send.
    Time next_deadline() const;

    // A second request: kill now (second Ctrl-C), or an earlier deadline. It can only make the kill
    // earlier.
    void kill_at(Time when);
    // Those that were asked wait for something that will not come. True: they have had a second,
    // and are to be killed now.
    bool waits_in_vain(Time now);
    bool killed() const { return stage_ == Stage::killed; }

  private:
    enum class Stage {
        to_ask,  // the first signal has not been given out
        asked,   // waiting for the grace to end
        killed,  // SIGKILL has been given out
    };
    int first_signal_;
    Time started_;
    Time kill_at_;
    Stage stage_ = Stage::to_ask;
};

}  // namespace ddprun::agent
