// Decides when the workers must be killed, and when a frozen ddprun.
#include "keeper/process/keeper_deadline.h"

#include <algorithm>

namespace ddprun::agent::keeper {

void Deadline::set(Time workers_until, Duration lease) {
    workers_until_ = workers_until;
    lease_ = lease;
    passed_ = false;
}

// ddprun is not frozen, so the plan to kill it is dropped.
void Deadline::noticed(Time at) {
    noticed_ = at;
    frozen_at_ = kNever;
}

Time Deadline::next() const { return std::min(passed_ ? kNever : workers_until_, frozen_at_); }

void Deadline::wait_for_word(Time now, const Pulse& agent) {
    frozen_at_ = now + share(lease_, kFrozen);
    pulse_ = agent;
}

Deadline::Due Deadline::look(Time now, const Pulse& agent) {
    Due due;
    if (!passed_ && now >= workers_until_) {
        passed_ = due.passed = true;
        // ddprun may have noticed before the keeper did, if the keeper was not scheduled in time.
        // Its time to answer counts from now, because it is asked only now.
        if (noticed_ < workers_until_ && frozen_at_ == kNever) {
            asked_at_ = now;
            wait_for_word(now, agent);
        }
    }
    if (now < frozen_at_) return due;
    // The keeper itself stood still, and so perhaps ddprun did, too. The question still stands.
    const bool late = now - frozen_at_ > share(lease_, kFrozen);
    if (late) asked_at_ = now;
    due.agent_frozen = !late && (!is_slow(pulse_, agent) || now - asked_at_ >= kSlowAtMost);
    if (due.agent_frozen)
        frozen_at_ = kNever;
    else
        wait_for_word(now, agent);
    return due;
}

}  // namespace ddprun::agent::keeper
