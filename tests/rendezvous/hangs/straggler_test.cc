// Which rank is slow: its share of the time outside of collectives against the others'.
#include "rendezvous/hangs/straggler.h"

#include <gtest/gtest.h>

namespace ddprun::rendezvous {
namespace {

// Nodes of four workers, in the order of their ranks.
std::vector<NodePace> nodes(const std::vector<Pace>& paces) {
    std::vector<NodePace> all;
    for (const Pace& pace : paces) all.push_back({4 * static_cast<int>(all.size()), 4, pace});
    return all;
}

TEST(Straggler, IsTheRankForWhichAllOthersWait) {
    const auto found = find_straggler(nodes({{35, 3, 30}, {96, 2, 32}, {40, 0, 32}}));
    ASSERT_TRUE(found);
    EXPECT_EQ(found->rank, 6);
    EXPECT_EQ(found->outside, 96);
    EXPECT_EQ(found->others, 32);
    EXPECT_EQ(
        straggler_sentence(*found, "rank 6 (local 2 on b)"),
        "rank 6 (local 2 on b) is slow, not stuck: it has been outside of collectives 96 % of "
        "the time, the others 32 %, so it takes 3.0 times as long");
}

// With one worker a node, the other nodes are the others.
TEST(Straggler, IsFoundWhereNodesHaveOneWorker) {
    const auto found = find_straggler({{0, 1, {30, 0, 0}}, {1, 1, {90, 0, 0}}});
    ASSERT_TRUE(found);
    EXPECT_EQ(found->rank, 1);
    EXPECT_EQ(found->others, 30);
    EXPECT_FALSE(find_straggler({{0, 1, {90, 0, 0}}})) << "one rank has no others";
}

// A node counts as many times as it has workers: one of many that wait does not hide that most do
// not.
TEST(Straggler, TheOthersAreTheMedianOfAllRanks) {
    EXPECT_FALSE(find_straggler({{0, 8, {95, 0, 90}}, {8, 1, {20, 0, 0}}, {9, 1, {20, 0, 0}}}));
    EXPECT_TRUE(find_straggler({{0, 2, {95, 0, 90}}, {2, 8, {25, 0, 20}}}));
}

// A rank that takes a little longer, shares that are small, jobs without collectives.
TEST(Straggler, IsNobodyWhereTheDifferenceIsSmall) {
    EXPECT_FALSE(find_straggler(nodes({{59, 0, 30}})));
    EXPECT_FALSE(find_straggler(nodes({{28, 0, 2}}))) << "14 times, but 26 % of the time";
    EXPECT_FALSE(find_straggler(nodes({{100, 0, 100}})));
    EXPECT_TRUE(find_straggler(nodes({{60, 0, 30}})));
}

TEST(Straggler, IsNotJudgedBeforeAllNodesHaveTold) {
    EXPECT_FALSE(find_straggler({}));
    EXPECT_FALSE(find_straggler(nodes({{96, 2, 32}, {}})));
}

}  // namespace
}  // namespace ddprun::rendezvous
