// Decides when to ask the keeper whether it works, and when it counts as frozen.
#include "keeper/keeper_watch.h"

namespace ddprun::agent::keeper {
namespace {

// Shares of the patience. From work to the question; from the question to the look at a keeper
// without an answer; from there to the end, in which it shows whether it uses CPU time.
constexpr Share kAskSoon{250}, kDoubt{500}, kRest{250};

}  // namespace

void Watch::begin(Time now) {
    state_ = State::idle;
    next_ = now + patience_;
}

bool Watch::work_asked(Time now) {
    const Time soon = now + share(patience_, kAskSoon);
    if (state_ != State::idle || next_ <= soon || next_ == kNever) return false;
    next_ = soon;
    return true;
}

void Watch::answered(Time now) {
    if (state_ != State::idle) begin(now);
}

Watch::Due Watch::look(Time now, const Pulse& keeper) {
    if (now < next_) return Due::nothing;
    const Duration rest = share(patience_, kRest);
    if (state_ == State::idle) {
        state_ = State::asked;
        asked_at_ = now;
        next_ = now + share(patience_, kDoubt);
        return Due::ask;
    }
    if (now - next_ > rest) {
        // ddprun was not scheduled, and so perhaps the keeper was not either. The question still
        // stands.
        state_ = State::asked;
        asked_at_ = now;
        next_ = now + share(patience_, kDoubt);
        return Due::nothing;
    }
    const bool slow = is_slow(pulse_, keeper) && now - asked_at_ < kSlowAtMost;
    if (state_ == State::doubted && !slow) {
        next_ = kNever;
        return Due::frozen;
    }
    state_ = State::doubted;
    pulse_ = keeper;
    next_ = now + rest;
    return Due::nothing;
}

}  // namespace ddprun::agent::keeper
