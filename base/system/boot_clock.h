// The one place where CLOCK_BOOTTIME is read: it goes on while a host is suspended, so that a lease
// ends there too. Beside it the time of day, for what people read.
#pragma once

#include <ctime>

#include "base/time.h"

namespace ddprun {

inline Time boot_now() {
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now);
    return Time{std::chrono::seconds{now.tv_sec} + std::chrono::nanoseconds{now.tv_nsec}};
}

// Since 1970.
inline Duration day_now() {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    return std::chrono::seconds{now.tv_sec} + std::chrono::nanoseconds{now.tv_nsec};
}

}  // namespace ddprun
