// Reads the clocks. This is the only place that reads CLOCK_BOOTTIME.
//
// CLOCK_BOOTTIME continues while a host is suspended, so a lease also ends on a host that sleeps.
// CLOCK_MONOTONIC would stop.
#pragma once

#include <ctime>

#include "base/time.h"

namespace ddprun {

// Now, in nanoseconds since this host was booted.
inline Time boot_now() {
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now);
    return Time{std::chrono::seconds{now.tv_sec} + std::chrono::nanoseconds{now.tv_nsec}};
}

// The time of day: nanoseconds since 1970. It may jump when somebody sets the clock, so use it only
// for people, files and other programs, never for deadlines.
inline Duration day_now() {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    return std::chrono::seconds{now.tv_sec} + std::chrono::nanoseconds{now.tv_nsec};
}

}  // namespace ddprun
