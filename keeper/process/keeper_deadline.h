// The deadline of the workers, and whether ddprun is frozen. Pure; owned by the keeper process.
//
//   set(until, lease)    a new deadline, about which nothing has been done yet
//   look(now): passed    → kill all workers, once for each deadline
//   kFrozen lease later  → kill ddprun, once, unless it said that it noticed, or is slow
//
// Slow is not frozen (process_pulse.h): a ddprun that gets no processor on a loaded host has more
// time, up to kSlowAtMost. It does no harm meanwhile: its workers are dead, and the keeper starts
// none after the deadline. And when the keeper itself was not scheduled, the whole host may have
// stood still: ddprun gets its time anew.
//
// The keeper may not be scheduled in time, so ddprun may notice a deadline before the keeper does.
// This counts only if ddprun said so at the deadline or later: what it says before says nothing
// about this deadline. After the keeper has seen the deadline pass, any word shows that ddprun
// runs.
#pragma once

#include "base/time.h"
#include "keeper/killing/process_pulse.h"

namespace ddprun::agent::keeper {

// Share of the lease, counted from the moment at which the keeper saw the deadline pass: then a
// ddprun that stands still counts as frozen. It may still live when the next generation starts, and
// does no harm then (rendezvous/PROTOCOL.md, inequality 16).
inline constexpr Share kFrozen{100};

class Deadline {
  public:
    // What is to be done now, in this order.
    struct Due {
        bool passed = false;        // ask ddprun whether it noticed, and kill all workers
        bool agent_frozen = false;  // kill ddprun
    };

    // kNever means no deadline. An older deadline that ddprun has not noticed still counts.
    void set(Time workers_until, Duration lease);
    // ddprun knew of all deadlines before `at`, the moment at which it said so.
    void noticed(Time at);

    // No worker may start or run from this moment on. The value stays when it has passed.
    Time workers_until() const { return workers_until_; }
    // When look() has something to say again; kNever: not before the next set().
    Time next() const;
    // `now`: all that ddprun had said by then is known here. `agent` is looked at now or later.
    Due look(Time now, const Pulse& agent);

  private:
    void wait_for_word(Time now, const Pulse& agent);

    Time workers_until_ = kNever;
    Duration lease_{};
    bool passed_ = false;  // look() has said that it passed
    Time asked_at_{};
    Time frozen_at_ = kNever;  // when ddprun is killed unless it says before that it noticed
    Pulse pulse_;              // of ddprun, when it got this time
    Time noticed_{};           // when ddprun last said so, by its own clock reading
};

}  // namespace ddprun::agent::keeper
