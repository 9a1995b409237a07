// The time types of the state machines: a point in time on one node's CLOCK_BOOTTIME, in
// nanoseconds.
//
// Only the difference of two points of the same node means anything. Nodes never exchange points in
// time, only durations. The clock itself is read by boot_now() in base/system/boot_clock.h, never
// here: state machines get the time as an argument, so that tests can run them in virtual time.
#pragma once

#include <chrono>
#include <limits>
#include <string>

namespace ddprun {

using Duration = std::chrono::nanoseconds;

// Makes these time points a type of their own. It has no now() on purpose.
struct BootClock {
    using duration = Duration;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<BootClock, duration>;
    static constexpr bool is_steady = true;
};
using Time = BootClock::time_point;

// A deadline that never comes.
inline constexpr Time kNever = Time::max();
// A moment before every other. Half of the range, so that `now - kLongAgo` does not overflow.
inline constexpr Time kLongAgo = Time{Duration{std::numeric_limits<Duration::rep>::min() / 2}};

// A part of a duration: share(lease, 0.45) is 45 % of the lease.
constexpr Duration share(Duration whole, double part) {
    return Duration{static_cast<Duration::rep>(static_cast<double>(whole.count()) * part)};
}

// For people and files that count in seconds.
constexpr double in_seconds(Duration duration) {
    return std::chrono::duration<double>(duration).count();
}

// For sentences: "12 ms", "8.0 s", "4 m 30 s", "3 h 12 m".
std::string to_text(Duration duration);

}  // namespace ddprun
