// What counts as a flood. Pure; the time is the test's.
#include "agent/output/flood_watch.h"

#include <gtest/gtest.h>

#include <vector>

namespace ddprun::agent {
namespace {

using std::chrono::milliseconds;

// Ten bytes are read every 100 ms for a time, and there is always more. Returns what was told.
std::vector<std::size_t> flood(FloodWatch& watch, Time& now, milliseconds time) {
    std::vector<std::size_t> told;
    for (const Time end = now + time; now < end; now += milliseconds{100})
        if (const auto bytes = watch.more(10, now)) told.push_back(*bytes);
    return told;
}

TEST(FloodWatch, TellsOnceThatItGoesOn) {
    FloodWatch watch;
    Time now{milliseconds{7'000'000}};
    EXPECT_EQ(flood(watch, now, milliseconds{5'000}).size(), 0u);
    EXPECT_EQ(flood(watch, now, milliseconds{100}), std::vector<std::size_t>{510});
    EXPECT_EQ(flood(watch, now, milliseconds{60'000}).size(), 0u);
}

// A worker that prints a lot, but whose pipe is empty now and then.
TEST(FloodWatch, APauseEndsIt) {
    FloodWatch watch;
    Time now{milliseconds{7'000'000}};
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(flood(watch, now, milliseconds{4'900}).size(), 0u);
        watch.pause();
    }
    EXPECT_EQ(flood(watch, now, milliseconds{5'100}), std::vector<std::size_t>{510});
}

// 250 ms without more do not end it, 350 ms do.
TEST(FloodWatch, AShortGapDoesNotEndIt) {
    FloodWatch watch(milliseconds{300});
    Time now{milliseconds{7'000'000}};
    EXPECT_EQ(flood(watch, now, milliseconds{3'000}).size(), 0u);
    now += milliseconds{150};
    EXPECT_EQ(flood(watch, now, milliseconds{1'700}).size(), 0u);
    now += milliseconds{250};  // and 100 ms before it
    EXPECT_EQ(flood(watch, now, milliseconds{5'000}).size(), 0u);
    EXPECT_EQ(flood(watch, now, milliseconds{100}).size(), 1u);
}

}  // namespace
}  // namespace ddprun::agent
