// Kills in rounds, with a timer between them.
#include "keeper/kill_rounds.h"

#include <utility>

#include "base/loop/child_program.h"

namespace ddprun::agent {
namespace {

// SIGKILL needs a moment to take effect, even on a healthy host.
constexpr auto kLookAgain = std::chrono::milliseconds{2};

}  // namespace

void KillRounds::run(std::function<void()> done) {
    done_ = std::move(done);
    round();
}

void KillRounds::stop() {
    done_ = {};
    timer_.cancel();
}

// A handler that is queued already runs after stop(), or after the end of this object.
void KillRounds::round() {
    // Anew each time: a number is free again when its program has ended.
    rounds_.spare_nobody();
    for (const pid_t program : running_programs(io_)) rounds_.spare_always(program);
    if (rounds_.round({})) return std::exchange(done_, {})();
    timer_.expires_after(kLookAgain);
    timer_.async_wait(
        [this, alive = std::weak_ptr(alive_)](const boost::system::error_code& error) {
            if (!error && alive.lock() && done_) round();
        });
}

}  // namespace ddprun::agent
