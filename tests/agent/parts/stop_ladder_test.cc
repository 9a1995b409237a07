#include "agent/parts/stop_ladder.h"

#include <gtest/gtest.h>

#include <csignal>

using namespace ddprun;
using namespace ddprun::agent;
using std::chrono::seconds;

namespace {
Time at(int s) { return Time{seconds{s}}; }
}  // namespace

// TERM at once, KILL after the grace, then nothing.
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

TEST(StopLadder, IsCutShortByTheLeasesDeadline) {
    StopLadder ladder(SIGTERM, at(10), seconds{30}, at(12));
    EXPECT_EQ(ladder.step(at(10)), SIGTERM);
    EXPECT_EQ(ladder.next_deadline(), at(12));
    EXPECT_EQ(ladder.step(at(12)), SIGKILL);
}

TEST(StopLadder, KillsAtOnceWhenThereIsNoTime) {
    EXPECT_EQ(StopLadder(SIGTERM, at(10), seconds{30}, at(9)).step(at(10)), SIGKILL);
    EXPECT_EQ(StopLadder(SIGTERM, at(10), seconds{0}).step(at(10)), SIGKILL);
    EXPECT_EQ(StopLadder(SIGKILL, at(10), seconds{30}).step(at(10)), SIGKILL);
}

// The second Ctrl-C; it cannot be taken back.
TEST(StopLadder, ASecondRequestOnlyMakesItQuicker) {
    StopLadder ladder(SIGINT, at(10), seconds{30});
    EXPECT_EQ(ladder.step(at(10)), SIGINT);
    ladder.kill_at(at(11));
    ladder.kill_at(at(50));
    EXPECT_EQ(ladder.next_deadline(), at(11));
    EXPECT_EQ(ladder.step(at(11)), SIGKILL);
}

TEST(StopLadder, AnEndlessGraceDoesNotOverflow) {
    StopLadder ladder(SIGTERM, at(10), Duration::max());
    EXPECT_EQ(ladder.step(at(10)), SIGTERM);
    EXPECT_EQ(ladder.next_deadline(), kNever);
}
