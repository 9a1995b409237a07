// When a slow rank is told: after 3 minutes, and after four times as long each time.
#include "rendezvous/hangs/straggler_watch.h"

#include <gtest/gtest.h>

#include "tests/support/builders.h"

namespace ddprun::rendezvous {
namespace {

using namespace ddprun::test;

constexpr Straggler kRank2{2, 90, 30}, kRank3{3, 90, 30};

TEST(StragglerWatch, Rule22q_TellsARankThatIsSlowForThreeMinutes) {
    StragglerWatch watch;
    EXPECT_FALSE(watch.judged(at(100), kRank2));
    EXPECT_FALSE(watch.judged(at(279), kRank2));
    EXPECT_TRUE(watch.judged(at(280), kRank2));
    EXPECT_FALSE(watch.judged(at(281), kRank2)) << "once";
    EXPECT_FALSE(watch.judged(at(819), kRank2));
    EXPECT_TRUE(watch.judged(at(820), kRank2)) << "after 12 minutes";
}

// A leader of many nodes has thousands of events a second.
TEST(StragglerWatch, LooksEachFifteenSeconds) {
    StragglerWatch watch;
    EXPECT_TRUE(watch.is_due(at(100)));
    EXPECT_FALSE(watch.is_due(at(100)));
    EXPECT_FALSE(watch.is_due(at(114)));
    EXPECT_TRUE(watch.is_due(at(115)));
}

TEST(StragglerWatch, BeginsAnewWithAnotherRankOrNone) {
    StragglerWatch watch;
    watch.judged(at(0), kRank2);
    EXPECT_FALSE(watch.judged(at(170), kRank3));
    EXPECT_FALSE(watch.judged(at(200), kRank3));
    EXPECT_TRUE(watch.judged(at(350), kRank3));
    EXPECT_FALSE(watch.judged(at(400), std::nullopt));
    EXPECT_FALSE(watch.judged(at(401), kRank3));
    EXPECT_TRUE(watch.judged(at(581), kRank3));
}

}  // namespace
}  // namespace ddprun::rendezvous
