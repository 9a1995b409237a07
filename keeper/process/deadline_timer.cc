// A timerfd for the keeper.
#include "keeper/process/deadline_timer.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace ddprun::agent::keeper {

bool DeadlineTimer::open() {
    timer_.reset(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
    return static_cast<bool>(timer_);
}

void DeadlineTimer::set(Time next) {
    itimerspec when{};
    if (next != kNever) {
        // Zero would disarm the timer, so the value is at least 1 ns.
        const std::int64_t ns = std::max<std::int64_t>(next.time_since_epoch().count(), 1);
        when.it_value = {ns / 1'000'000'000, ns % 1'000'000'000};
    }
    ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

bool DeadlineTimer::fired() {
    std::uint64_t ignored = 0;
    return ::read(timer_.get(), &ignored, sizeof ignored) >= 0;
}

}  // namespace ddprun::agent::keeper
