// When a job starts its workers warm.
#include "agent/warm/warm_policy.h"

#include <gtest/gtest.h>

using namespace ddprun;
using namespace ddprun::agent::warm;

namespace {

Time at(double seconds) {
    return Time{std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds))};
}

}  // namespace

// Soon after the first step, when the imports of this step are done, too; later without a report.
TEST(WarmPolicy, PreparesAServerWhenTheWorkersHaveSettled) {
    WarmPolicy policy(Mode::automatic);
    EXPECT_EQ(policy.prepare_at(), kNever);
    policy.begin(false, at(10));
    EXPECT_EQ(policy.prepare_at(), at(10) + kSettled);
    policy.progressed(at(12));
    EXPECT_EQ(policy.prepare_at(), at(12) + kAfterProgress);
    policy.progressed(at(14));
    EXPECT_EQ(policy.prepare_at(), at(12) + kAfterProgress) << "only the first report counts";
    policy.ended(true, at(20));
    EXPECT_EQ(policy.prepare_at(), kNever);
}

TEST(WarmPolicy, OnlyAlwaysWaitsForAServer) {
    EXPECT_TRUE(WarmPolicy(Mode::always).waits_for_server());
    EXPECT_FALSE(WarmPolicy(Mode::automatic).waits_for_server());
    EXPECT_TRUE(WarmPolicy(Mode::automatic).warm_allowed());
    WarmPolicy off(Mode::off);
    off.begin(false, at(0));
    EXPECT_FALSE(off.warm_allowed());
    EXPECT_EQ(off.prepare_at(), kNever);
}

// The cold generation behind a warm one that died at once fares better. The second time, the job
// stays cold.
TEST(WarmPolicy, StaysColdIfColdStartsFareBetter) {
    WarmPolicy policy(Mode::always);
    for (double start : {0.0, 100.0}) {
        ASSERT_TRUE(policy.warm_allowed());
        policy.begin(true, at(start));
        EXPECT_TRUE(policy.ended(true, at(start + 1)));
        EXPECT_FALSE(policy.warm_allowed());
        EXPECT_FALSE(policy.waits_for_server());
        policy.begin(false, at(start + 2));
        policy.progressed(at(start + 3));
        EXPECT_FALSE(policy.ended(true, at(start + 4)));
    }
    EXPECT_TRUE(policy.off());
    EXPECT_FALSE(policy.warm_allowed());
}

// The cold one dies as early: the program is to blame, and each second start is warm.
TEST(WarmPolicy, ForgivesWhatColdStartsSufferToo) {
    WarmPolicy policy(Mode::always);
    for (int i = 0; i < 5; ++i) {
        policy.begin(true, at(10 * i));
        EXPECT_TRUE(policy.ended(true, at(10 * i + 1)));
        policy.begin(false, at(10 * i + 2));
        EXPECT_FALSE(policy.ended(true, at(10 * i + 3)));
        EXPECT_TRUE(policy.warm_allowed());
    }
}

// With progress, after ten seconds, or because the job was stopped: nothing is wrong with warm
// starts.
TEST(WarmPolicy, ALateEndSaysNothing) {
    WarmPolicy policy(Mode::automatic);
    for (int i = 0; i < 3; ++i) {
        policy.begin(true, at(100 * i));
        policy.progressed(at(100 * i + 1));
        EXPECT_FALSE(policy.ended(true, at(100 * i + 2)));
        policy.begin(true, at(100 * i + 10));
        EXPECT_FALSE(policy.ended(true, at(100 * i + 10) + kEarly));
        policy.begin(true, at(100 * i + 30));
        EXPECT_FALSE(policy.ended(false, at(100 * i + 31)));
    }
    EXPECT_TRUE(policy.warm_allowed());
    EXPECT_FALSE(policy.ended(true, at(999))) << "no generation runs";
}
