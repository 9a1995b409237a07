// Whether the keeper still answers ddprun. The keeper watches ddprun the same way
// (keeper_deadline.h). Pure; owned by Keeper.
//
//   look(now, …)     → ask the keeper whether it works; each `patience`
//   work_asked(now)  somebody waits for the work, so the question comes soon
//   answered(now)    the keeper works
//   no answer within `patience` of the work, or 3/4 of it of a question → frozen: kill it
//
// Slow is not frozen. A keeper that removes gigabytes of shared memory does not answer for a while,
// but it uses CPU time; on a loaded host it may wait for a processor. So a keeper without an answer
// gets more time as long as it does either, up to kSlowAtMost. And when ddprun itself was not
// scheduled, the whole host may have stood still: the keeper gets its time anew.
#pragma once

#include "base/time.h"
#include "keeper/killing/process_pulse.h"

namespace ddprun::agent::keeper {

class Watch {
  public:
    enum class Due { nothing, ask, frozen };

    explicit Watch(Duration patience) : patience_(patience) {}

    // A new keeper, which has been asked nothing yet.
    void begin(Time now);
    // It is gone.
    void end() { next_ = kNever; }
    // The keeper has been asked to do something. Most work is done before the question is due, so
    // it costs no message. True: next() has become earlier.
    bool work_asked(Time now);
    void answered(Time now);

    // When to look; kNever before begin(), after end() and after `frozen`.
    Time next() const { return next_; }
    Due look(Time now, const Pulse& keeper);
    // How long the keeper has not answered. Only after `frozen`.
    Duration silence(Time now) const { return now - asked_at_; }

  private:
    enum class State { idle, asked, doubted };

    Duration patience_;
    State state_ = State::idle;
    Time next_ = kNever;
    Time asked_at_{};
    Pulse pulse_;  // when it was last looked at without an answer
};

}  // namespace ddprun::agent::keeper
