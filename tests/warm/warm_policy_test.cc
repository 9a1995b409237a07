// When a job starts its workers warm.
#include "warm/warm_policy.h"

#include <gtest/gtest.h>

using namespace ddprun;
using namespace ddprun::agent::warm;

namespace {

Time at(double seconds) {
    return Time{std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds))};
}

}  // namespace

// At once where a CPU is free, so that the server is ready as soon as it can be.
TEST(WarmPolicy, PreparesAServerAtTheFirstImport) {
    WarmPolicy policy(Mode::automatic, false);
    EXPECT_EQ(policy.next_look(), kNever);
    policy.begin(false, at(10));
    EXPECT_EQ(policy.next_look(), at(10) + kLook);
    EXPECT_FALSE(policy.looked(false, false, at(11)));
    EXPECT_TRUE(policy.looked(true, true, at(13)));
    policy.ended(true, false, at(20));
    EXPECT_EQ(policy.next_look(), kNever);
}

// Workers that import need each CPU. When they have met, or report a step, they have imported.
TEST(WarmPolicy, LetsCrowdedWorkersImportFirst) {
    WarmPolicy policy(Mode::automatic, true);
    policy.begin(false, at(10));
    EXPECT_FALSE(policy.looked(true, true, at(11)));
    policy.progressed(at(12));
    EXPECT_EQ(policy.next_look(), at(12));
    EXPECT_TRUE(policy.looked(true, false, at(12)));
    policy.begin(false, at(100));
    EXPECT_FALSE(policy.looked(true, false, at(101))) << "another generation";
    EXPECT_TRUE(policy.looked(true, false, at(100) + kSettled));
}

// A job runs for weeks, and hardly imports anything after its first minutes.
TEST(WarmPolicy, LooksLessOftenWhileNothingIsNew) {
    WarmPolicy policy(Mode::automatic, false);
    policy.begin(false, at(0));
    int looks = 0;
    for (Time now = policy.next_look(); now < at(3600); now = policy.next_look(), ++looks)
        policy.looked(true, false, now);
    EXPECT_LE(looks, 62);
    const Time now = policy.next_look();
    policy.looked(true, true, now);
    EXPECT_EQ(policy.next_look(), now + kLook);
}

TEST(WarmPolicy, OnlyAlwaysWaitsForAServer) {
    EXPECT_TRUE(WarmPolicy(Mode::always, false).waits_for_server());
    EXPECT_FALSE(WarmPolicy(Mode::automatic, false).waits_for_server());
    EXPECT_TRUE(WarmPolicy(Mode::automatic, false).warm_allowed());
    WarmPolicy off(Mode::off, false);
    off.begin(false, at(0));
    EXPECT_FALSE(off.warm_allowed());
    EXPECT_EQ(off.next_look(), kNever);
}

// The cold generation behind a warm one that died at once fares better. The second time, the job
// stays cold.
TEST(WarmPolicy, StaysColdIfColdStartsFareBetter) {
    WarmPolicy policy(Mode::always, false);
    for (double start : {0.0, 100.0}) {
        ASSERT_TRUE(policy.warm_allowed());
        policy.begin(true, at(start));
        EXPECT_TRUE(policy.ended(true, false, at(start + 1)));
        EXPECT_FALSE(policy.warm_allowed());
        EXPECT_FALSE(policy.waits_for_server());
        policy.begin(false, at(start + 2));
        policy.progressed(at(start + 3));
        EXPECT_FALSE(policy.ended(true, false, at(start + 4)));
    }
    EXPECT_TRUE(policy.off());
    EXPECT_FALSE(policy.warm_allowed());
}

// The cold one dies as early: the program is to blame, and each second start is warm.
TEST(WarmPolicy, ForgivesWhatColdStartsSufferToo) {
    WarmPolicy policy(Mode::always, false);
    for (int i = 0; i < 5; ++i) {
        policy.begin(true, at(10 * i));
        EXPECT_TRUE(policy.ended(true, false, at(10 * i + 1)));
        policy.begin(false, at(10 * i + 2));
        EXPECT_FALSE(policy.ended(true, false, at(10 * i + 3)));
        EXPECT_TRUE(policy.warm_allowed());
    }
}

// With progress, after ten seconds, or because the job was stopped: nothing is wrong with warm
// starts.
TEST(WarmPolicy, ALateEndSaysNothing) {
    WarmPolicy policy(Mode::automatic, false);
    for (int i = 0; i < 3; ++i) {
        policy.begin(true, at(100 * i));
        policy.progressed(at(100 * i + 1));
        EXPECT_FALSE(policy.ended(true, false, at(100 * i + 2)));
        policy.begin(true, at(100 * i + 10));
        EXPECT_FALSE(policy.ended(true, false, at(100 * i + 10) + kEarly));
        policy.begin(true, at(100 * i + 30));
        EXPECT_FALSE(policy.ended(true, true, at(100 * i + 31))) << "its workers had met";
        policy.begin(true, at(100 * i + 40));
        EXPECT_FALSE(policy.ended(false, false, at(100 * i + 41)));
    }
    EXPECT_TRUE(policy.warm_allowed());
    EXPECT_FALSE(policy.ended(true, false, at(999))) << "no generation runs";
}
