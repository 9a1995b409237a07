// The planned stop of all workers (agreed_stop.h).
#include "rendezvous/parts/agreed_stop.h"

namespace ddprun::rendezvous {

void AgreedStop::begin(const StopAsked& asked, Time now) {
    asked_ = asked;
    since_ = now;
}

std::optional<Stop> AgreedStop::told(Time now, Generation generation,
                                     const std::optional<Ending>& ending) const {
    Stop stop{.generation = generation, .signal = kTerminate, .reason = {}};
    if (asked_) {
        stop.signal = asked_->signal;
        stop.reason = asked_->reason;
        stop.cause = asked_->cause;
        // The request said how much time was left when it came. A node that gets the Stop later has
        // less.
        if (asked_->left) stop.left = *asked_->left - (now - since_);
        stop.requeue = ending->requeue;
    } else if (regroup_) {
        stop.reason = regroup_->sentence;
        stop.cause = regroup_->cause;
    } else {
        return std::nullopt;
    }
    return stop;
}

}  // namespace ddprun::rendezvous
