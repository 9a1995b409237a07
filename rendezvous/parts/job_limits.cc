// Lays what operators have set over the command line's limits (job_limits.h).
#include "rendezvous/parts/job_limits.h"

#include <algorithm>

namespace ddprun::rendezvous {
namespace {

// What `over` says replaces what `base` says.
void lay(OperatorLimits& base, const OperatorLimits& over) {
    if (over.min_nodes && over.max_nodes) {
        base.min_nodes = over.min_nodes;
        base.max_nodes = over.max_nodes;
    }
    if (over.max_restarts) base.max_restarts = over.max_restarts;
    if (!over.by.empty()) base.by = over.by;
}

}  // namespace

LimitsAsked JobLimits::set(const OperatorLimits& asked, Duration day) {
    lay(unrecorded_, asked);
    renew();
    number_ = std::max<std::int64_t>(number_ + 1, day.count());
    return {number_, unrecorded_};
}

// What was asked here after it, and before it was heard, is newer.
bool JobLimits::hear(const LimitsAsked& asked) {
    if (asked.number <= number_) return false;
    number_ = asked.number;
    const OperatorLimits before = to_record();
    lay(unrecorded_, asked.limits);
    renew();
    return to_record() != before;
}

OperatorLimits JobLimits::to_record() const {
    OperatorLimits all = recorded_;
    lay(all, unrecorded_);
    return all;
}

void JobLimits::adopt(const OperatorLimits& recorded) {
    recorded_ = recorded;
    renew();
}

void JobLimits::stand(const OperatorLimits& recorded) {
    unrecorded_ = {};
    adopt(recorded);
}

// The order of nodes may be long and never changes, so only numbers are copied.
void JobLimits::renew() {
    const OperatorLimits set = to_record();
    now_.min_nodes = set.min_nodes.value_or(of_command_line_.min_nodes);
    now_.max_nodes = set.max_nodes.value_or(of_command_line_.max_nodes);
    now_.max_restarts = set.max_restarts.value_or(of_command_line_.max_restarts);
}

}  // namespace ddprun::rendezvous
