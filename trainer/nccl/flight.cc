// Waits for an event of the GPU, and for the one who watches it.
#include "trainer/nccl/flight.h"

namespace ddprun::trainer {
namespace {

// Most calls take far less than a millisecond. So a waiting thread spins first, and then leaves the
// core to others.
constexpr int kSpins = 2000;
constexpr auto kPause = std::chrono::microseconds(50);

}  // namespace

void Flight::launched(const GpuEvent& after, bool captured) {
    std::lock_guard lock(mutex_);
    after_ = after;
    captured_ = captured;
}

void Flight::end_now(const Result<void>& result) {
    if (done_) return;
    done_ = true;
    result_ = result;
    ended_ = std::chrono::steady_clock::now();
    changed_.notify_all();
}

void Flight::end(const Result<void>& result) {
    std::lock_guard lock(mutex_);
    end_now(result);
}

bool Flight::doom() {
    std::lock_guard lock(mutex_);
    doomed_ = true;
    return !done_;
}

Result<bool> Flight::look() {
    std::lock_guard lock(mutex_);
    if (done_ || doomed_ || !after_) return done_;
    auto over = after_.seen();
    if (over && *over) end_now({});
    return over;
}

bool Flight::was_over() {
    std::lock_guard lock(mutex_);
    if (done_ || !after_) return done_;
    const auto over = after_.seen();
    if (over && *over) end_now({});
    return done_;
}

// An error of the event is the watch's to explain: it sees it too, and ends the call.
bool Flight::passed(std::unique_lock<std::mutex>&) {
    if (done_) return true;
    if (doomed_ || !after_) return false;
    const auto over = after_.reached();
    if (over && *over) end_now({});
    return done_;
}

Result<void> Flight::wait() {
    const GpuTurn turn(gpu_);
    std::unique_lock lock(mutex_);
    if (captured_)
        return usage_error(
            "a call that was captured into a graph has no end to wait for; use wait(stream)");
    for (int polls = 0; !passed(lock); ++polls) {
        if (polls > kSpins) {
            changed_.wait_for(lock, kPause);
            continue;
        }
        lock.unlock();
        lock.lock();
    }
    // The watch may have seen the end before. This thread now goes on behind it, too.
    if (result_ && after_) (void)after_.reached();
    return result_;
}

Result<void> Flight::wait(GpuStream stream) {
    const GpuTurn turn(gpu_);
    {
        std::lock_guard lock(mutex_);
        if (done_ && !result_) return result_;
        if (after_) return after_.before(stream);
    }
    // It could not be launched. The error is on its way.
    return wait();
}

bool Flight::done() {
    const auto over = look();
    return over && *over;
}

Work::Time Flight::ended() {
    std::lock_guard lock(mutex_);
    return ended_;
}

}  // namespace ddprun::trainer
