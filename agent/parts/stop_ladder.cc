// Steps of a stop (stop_ladder.h).
#include "agent/parts/stop_ladder.h"

#include <algorithm>
#include <csignal>

namespace ddprun::agent {
namespace {

// A handler runs when the program comes back from a call, and may try once more.
constexpr auto kMoment = std::chrono::seconds{1};

}  // namespace

StopLadder::StopLadder(int first_signal, Time started, Duration grace, std::optional<Time> cut_by)
    : first_signal_(first_signal), started_(started), kill_at_(kNever) {
    // A grace that would overflow the clock means "wait forever".
    if (grace < kNever - started) kill_at_ = started + std::max(grace, Duration::zero());
    // There is nothing gentler to wait for.
    if (first_signal == SIGKILL) kill_at_ = started;
    if (cut_by) kill_at(*cut_by);
}

std::optional<int> StopLadder::step(Time now) {
    if (stage_ == Stage::killed || now < next_deadline()) return std::nullopt;
    // The kill comes before a first signal that is still due: the workers would have no time to act
    // on it.
    if (now >= kill_at_) {
        stage_ = Stage::killed;
        return SIGKILL;
    }
    stage_ = Stage::asked;
    return first_signal_;
}

Time StopLadder::next_deadline() const {
    switch (stage_) {
        case Stage::to_ask:
            // The lease may end before the stop was to begin.
            return std::min(started_, kill_at_);
        case Stage::asked:
            return kill_at_;
        case Stage::killed:
            break;
    }
    return kNever;
}

// Never later: the lease or the user may have set the earlier time.
void StopLadder::kill_at(Time when) { kill_at_ = std::min(kill_at_, when); }

bool StopLadder::waits_in_vain(Time now) {
    if (stage_ != Stage::asked || now - started_ < kMoment || now >= kill_at_) return false;
    kill_at(now);
    return true;
}

}  // namespace ddprun::agent
