// Waits in short pieces, and looks at the group between them.
#include "trainer/torch/call_outcome.h"

#include <optional>

namespace ddprun::trainer {
namespace {
using Clock = std::chrono::steady_clock;
constexpr auto kLook = std::chrono::milliseconds(50);
constexpr auto kAsk = std::chrono::milliseconds(500);
}  // namespace

void CallOutcome::end(const std::exception_ptr& failure) {
    std::lock_guard lock(mutex_);
    if (failure && !failure_) failure_ = failure;
    --open_;
    changed_.notify_all();
}

// The lock is not held while the group is asked: that may take as long as the store.
void CallOutcome::wait(const Group& group, std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    auto ask = Clock::now() + kAsk;
    std::optional<Clock::time_point> give_up;
    while (open_ && !failure_) {
        if (changed_.wait_for(lock, kLook, [&] { return !open_ || failure_; })) break;
        const auto now = Clock::now();
        if (give_up && now >= *give_up) throw GivenUp();
        if (give_up) continue;
        lock.unlock();
        if (!group.is_cut() && now >= ask) {
            group.ask_other_ranks();
            ask = Clock::now() + kAsk;
        }
        if (group.is_cut()) give_up = Clock::now() + patience;
        lock.lock();
    }
    if (failure_) std::rethrow_exception(failure_);
}

}  // namespace ddprun::trainer
