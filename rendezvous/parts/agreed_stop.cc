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
        stop.reason = ending->sentence;
        stop.cause = asked_->cause;
        if (asked_->left) stop.left = *asked_->left - (now - since_);
        stop.requeue = ending->requeue;
    } else if (larger_world_) {
        stop.reason = *larger_world_;
        stop.cause = StopCause::larger_world;
    } else {
        return std::nullopt;
    }
    return stop;
}

Ending AgreedStop::ending_of(const StopAsked& asked, const std::string& sentence) {
    const bool plain = asked.cause == StopCause::signal;
    return {.verdict = plain ? Verdict::user_signal : Verdict::work_left,
            .code = plain ? 128 + asked.signal : kWorkLeft,
            .sentence = sentence,
            .first_failure = {},
            .first_failure_node = {},
            .consequences = 0};
}

}  // namespace ddprun::rendezvous
