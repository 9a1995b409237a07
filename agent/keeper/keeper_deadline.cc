// Decides when the workers must be killed, and when a frozen ddprun.
#include "agent/keeper/keeper_deadline.h"

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

Deadline::Due Deadline::look(Time now) {
    Due due;
    if (!passed_ && now >= workers_until_) {
        passed_ = due.passed = true;
        // ddprun may have noticed before the keeper did, if the keeper was not scheduled in time.
        // Its time to answer counts from now, because it is asked only now.
        if (noticed_ < workers_until_ && frozen_at_ == kNever)
            frozen_at_ = now + share(lease_, kFrozen);
    }
    if (now >= frozen_at_) {
        frozen_at_ = kNever;
        due.agent_frozen = true;
    }
    return due;
}

}  // namespace ddprun::agent::keeper
