// The parts of a job's time add up to all of it, whatever happened.
#include "launcher/ctl/time_spent.h"

#include <gtest/gtest.h>

#include "tests/launcher/ctl/examples.h"

namespace ddprun::launcher {
namespace {

using namespace std::chrono_literals;
using rendezvous::RestartPhase;

TEST(TimeSpent, AJobWithOneRestart) {
    const std::vector entries = {dated_generation(0, 10s),
                                 with_phases(dated_generation(1, 110s), 3s, 2s),
                                 with_phases(dated_end(210s), 4s, 0s)};
    EXPECT_EQ(time_spent(entries, kToday),
              (TimeSpent{.waiting = 10s, .starting = 7s, .training = 191s, .restarting = 2s}));
}

// It was stopped with work left, and waited in the queue.
TEST(TimeSpent, TimeBetweenTwoAllocationsIsWaiting) {
    const std::vector entries = {dated_generation(0, 0s), dated_end(100s), dated_allocation(400s),
                                 dated_generation(1, 430s), dated_end(500s)};
    EXPECT_EQ(time_spent(entries, kToday), (TimeSpent{.waiting = 330s, .training = 170s}));
}

TEST(TimeSpent, NobodyKnowsWhenALostAllocationStoppedTraining) {
    const std::vector entries = {dated_generation(0, 0s), dated_takeover(50s),
                                 dated_allocation(400s), dated_generation(1, 430s)};
    EXPECT_EQ(time_spent(entries, kToday), (TimeSpent{.waiting = 30s, .unknown = 400s}));
}

// The clocks of the file server and of the leader differ, or go back.
TEST(TimeSpent, NoPartIsLargerThanTheWholeOrNegative) {
    const std::vector entries = {dated_generation(0, -5s),
                                 with_phases(dated_generation(1, 10s), 8s, 9s),
                                 with_phases(dated_generation(2, 4s), 8s, 9s)};
    EXPECT_EQ(time_spent(entries, kToday), (TimeSpent{.starting = 8s, .restarting = 2s}));
    EXPECT_EQ(time_spent({}, kToday), TimeSpent{});
}

}  // namespace
}  // namespace ddprun::launcher
