// Time as the machines see it: points on one node's CLOCK_BOOTTIME, in nanoseconds. Only
// differences mean anything, and only between points of the same node; what travels between nodes
// is always a duration. The clock itself is read in the shells (boot_now() in base/system/boot_clock.h),
// never here.
#pragma once

#include <chrono>
#include <limits>
#include <string>

namespace ddprun {

using Duration = std::chrono::nanoseconds;

struct BootClock {  // names the clock for the type system; has no now() on purpose
    using duration = Duration;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<BootClock, duration>;
    static constexpr bool is_steady = true;
};
using Time = BootClock::time_point;

inline constexpr Time kNever = Time::max();  // a deadline that is none
inline constexpr Time kLongAgo = Time{Duration{std::numeric_limits<Duration::rep>::min() / 2}};

// `part` of a duration, e.g. share(lease, 0.45).
constexpr Duration share(Duration whole, double part) {
    return Duration{static_cast<Duration::rep>(static_cast<double>(whole.count()) * part)};
}

// For sentences: "8.0 s", "12 ms", "4 m 30 s", "3 h 12 m".
std::string to_text(Duration duration);

}  // namespace ddprun
