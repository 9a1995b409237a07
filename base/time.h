// The time types of the state machines: a point in time on one node's CLOCK_BOOTTIME, in
// nanoseconds.
//
// Only the difference of two points of the same node means anything. Nodes never exchange points in
// time, only durations. The clock itself is read by boot_now() in base/system/boot_clock.h, never
// here: state machines get the time as an argument, so that tests can run them in virtual time.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
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

// A share of something in per mille. Integers, so that sums and comparisons of shares are exact.
struct Share {
    std::int64_t per_mille = 0;
    constexpr auto operator<=>(const Share&) const = default;
};
constexpr Share operator+(Share a, Share b) { return {a.per_mille + b.per_mille}; }
constexpr Share operator-(Share a, Share b) { return {a.per_mille - b.per_mille}; }
constexpr Share operator*(std::int64_t times, Share part) { return {times * part.per_mille}; }

// A part of a duration: share(lease, Share{450}) is 45 % of the lease.
constexpr Duration share(Duration whole, Share part) {
    // Divided first: the product of a long duration would be too large.
    return whole / 1000 * part.per_mille + whole % 1000 * part.per_mille / 1000;
}
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
