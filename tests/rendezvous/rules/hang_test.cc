#include "rendezvous/rules/hang.h"

#include <gmock/gmock.h>

#include "tests/support/builders.h"

using namespace ddprun;
using namespace ddprun::rendezvous;
using namespace ddprun::test;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

// Nodes a, b, … with two workers each, whose steps these are; -1: none was named, -2: it has ended.
std::vector<NodeSteps> job(const std::vector<std::pair<int, int>>& steps) {
    std::vector<NodeSteps> nodes;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const int offset = static_cast<int>(2 * i);
        NodeSteps node{{test::node(std::string(1, static_cast<char>('a' + i))), offer(2), offset},
                       {}};
        if (steps[i].first > -2) node.slowest.push_back({offset, steps[i].first});
        if (steps[i].second > -2) node.slowest.push_back({offset + 1, steps[i].second});
        nodes.push_back(std::move(node));
    }
    return nodes;
}

std::vector<int> ranks(const Slowest& slowest) {
    std::vector<int> all;
    for (const Slow& slow : slowest.workers) all.push_back(slow.rank);
    return all;
}

}  // namespace

// Three at the most; the lowest step first, then the lowest rank.
TEST(Hang, TheLowestStepIsTheSlowest) {
    const Slowest slowest = find_slowest(job({{9, 9}, {8, 7}, {9, 9}}));
    EXPECT_THAT(ranks(slowest), ElementsAre(3, 2, 0));
    EXPECT_EQ(slowest.workers[0].node, node("b"));
    EXPECT_EQ(slowest.workers[0].local_rank, 1);
    EXPECT_TRUE(slowest.one_node);
}

// In a collective all wait at the same step: the ranks are shown, and no node is blamed.
TEST(Hang, WhereAllStandAtOneStepNoNodeIsNamed) {
    const Slowest slowest = find_slowest(job({{9, 9}, {9, 9}}));
    EXPECT_THAT(ranks(slowest), ElementsAre(0, 1, 2));
    EXPECT_FALSE(slowest.one_node);
}

// Only rank 0 reports: of the others nobody knows, so they come last, and nobody is blamed.
TEST(Hang, WhoNamesNoStepComesLast) {
    const Slowest slowest = find_slowest(job({{9, -1}, {-1, -1}}));
    EXPECT_THAT(ranks(slowest), ElementsAre(0, 1, 2));
    EXPECT_FALSE(slowest.one_node);
    EXPECT_FALSE(find_slowest(job({{9, 9}, {-1, -1}})).one_node);
    EXPECT_FALSE(find_slowest(job({{-1, -1}, {-1, -1}})).one_node);
}

// A node alone cannot be told from others; one whose workers have all ended names none.
TEST(Hang, OneNodeAloneIsNotBlamed) {
    EXPECT_FALSE(find_slowest(job({{3, 4}})).one_node);
    EXPECT_FALSE(find_slowest(job({{3, 4}, {-2, -2}})).one_node);
    EXPECT_THAT(find_slowest(job({{-2, -2}})).workers, IsEmpty());
}

TEST(Hang, HalfALeaseIsAdded) {
    Limits with = limits(2, 2);
    with.hang_timeout = sec(30);
    EXPECT_EQ(hangs_at(at(10), with), at(45));
}

TEST(Hang, SaysWhoAndForHowLong) {
    Limits with = limits(2, 2);
    with.hang_timeout = sec(30);
    EXPECT_EQ(hang_sentence(sec(35), with, find_slowest(job({{9, 9}, {8, 7}}))),
              "no rank has made progress for 35.0 s (--hang-timeout 30.0 s); the slowest is rank 3 "
              "(local 1 on b), at step 7");
    EXPECT_EQ(hang_sentence(sec(35), with, {}),
              "no rank has made progress for 35.0 s (--hang-timeout 30.0 s)");
    EXPECT_EQ(place_of({node("b"), 3, 1, -1}), "rank 3 (local 1 on b), which has reported no step");
}
