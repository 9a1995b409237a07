// When a stop asks, and when it kills. Pure: the ladder knows no workers, only signals and times.
#include "agent/parts/stop_ladder.h"

#include <gtest/gtest.h>

#include <csignal>

using namespace ddprun;
using namespace ddprun::agent;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {
Time at(int s) { return Time{seconds{s}}; }
}  // namespace

// SIGTERM at once, SIGKILL after the grace, then nothing. Each signal comes once, however often
// step() is called.
TEST(StopLadder, AsksThenKills) {
    StopLadder ladder(SIGTERM, at(10), seconds{5});
    EXPECT_EQ(ladder.next_deadline(), at(10));
    EXPECT_EQ(ladder.step(at(10)), SIGTERM);
    EXPECT_EQ(ladder.step(at(10)), std::nullopt);
    EXPECT_EQ(ladder.next_deadline(), at(15));
    EXPECT_EQ(ladder.step(at(14)), std::nullopt);
    EXPECT_EQ(ladder.step(at(15)), SIGKILL);
    EXPECT_TRUE(ladder.killed());
    EXPECT_EQ(ladder.step(at(99)), std::nullopt);
    EXPECT_EQ(ladder.next_deadline(), kNever);
}

// The lease ends before the grace does. Other nodes may go on after the lease, so the kill comes at
// 12.
TEST(StopLadder, IsCutShortByTheLeasesDeadline) {
    StopLadder ladder(SIGTERM, at(10), seconds{30}, at(12));
    EXPECT_EQ(ladder.step(at(10)), SIGTERM);
    EXPECT_EQ(ladder.next_deadline(), at(12));
    EXPECT_EQ(ladder.step(at(12)), SIGKILL);
}

// The lease has passed already; no grace; or the first signal is SIGKILL itself.
TEST(StopLadder, KillsAtOnceWhenThereIsNoTime) {
    EXPECT_EQ(StopLadder(SIGTERM, at(10), seconds{30}, at(9)).step(at(10)), SIGKILL);
    EXPECT_EQ(StopLadder(SIGTERM, at(10), seconds{0}).step(at(10)), SIGKILL);
    EXPECT_EQ(StopLadder(SIGKILL, at(10), seconds{30}).step(at(10)), SIGKILL);
}

// The user presses Ctrl-C a second time. A later and longer grace cannot take that back.
TEST(StopLadder, ASecondRequestOnlyMakesItQuicker) {
    StopLadder ladder(SIGINT, at(10), seconds{30});
    EXPECT_EQ(ladder.step(at(10)), SIGINT);
    ladder.kill_at(at(11));
    ladder.kill_at(at(50));
    EXPECT_EQ(ladder.next_deadline(), at(11));
    EXPECT_EQ(ladder.step(at(11)), SIGKILL);
}

// Workers that wait for one that has died. They have a second, for a handler that saves.
TEST(StopLadder, IsCutShortAfterASecondWhereWorkersWaitInVain) {
    StopLadder ladder(SIGTERM, at(10), seconds{5});
    EXPECT_FALSE(ladder.waits_in_vain(at(12))) << "nothing was asked of them yet";
    EXPECT_EQ(ladder.step(at(12)), SIGTERM);
    EXPECT_TRUE(ladder.waits_in_vain(at(12)));
    EXPECT_EQ(ladder.step(at(12)), SIGKILL);
    EXPECT_FALSE(ladder.waits_in_vain(at(13))) << "it is told once";
    StopLadder other(SIGTERM, at(10), seconds{5});
    other.step(at(10));
    EXPECT_FALSE(other.waits_in_vain(at(10) + milliseconds{900}));
}

// A time beyond the range of the clock would wrap around to the past and kill at once.
TEST(StopLadder, AnEndlessGraceDoesNotOverflow) {
    StopLadder ladder(SIGTERM, at(10), Duration::max());
    EXPECT_EQ(ladder.step(at(10)), SIGTERM);
    EXPECT_EQ(ladder.next_deadline(), kNever);
}
