// When a job counts as hung, and which ranks the log names (PROTOCOL.md, rule 22). Pure functions.
// A collective may wait for ever, and a hint at the right rank saves a user the search.
#include "rendezvous/rules/hang.h"

#include <gmock/gmock.h>

#include "tests/support/builders.h"

using namespace ddprun;
using namespace ddprun::rendezvous;
using namespace ddprun::test;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

// Nodes a, b, … with two workers each; the numbers are the workers' newest steps. -1: the worker
// has named no step. -2: it has ended.
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

// Ranks 2 and 3 of node b lag behind all others. At most three ranks are named: the lowest step
// first, then the lowest rank. Since all of the slowest are on b, the others wait for b.
TEST(Hang, TheLowestStepIsTheSlowest) {
    const Slowest slowest = find_slowest(job({{9, 9}, {8, 7}, {9, 9}}));
    EXPECT_THAT(ranks(slowest), ElementsAre(3, 2, 0));
    EXPECT_EQ(slowest.workers[0].node, node("b"));
    EXPECT_EQ(slowest.workers[0].local_rank, 1);
    EXPECT_TRUE(slowest.one_node);
}

// In a collective all ranks wait at the same step. Three ranks are shown, and no node is blamed.
TEST(Hang, WhereAllStandAtOneStepNoNodeIsNamed) {
    const Slowest slowest = find_slowest(job({{9, 9}, {9, 9}}));
    EXPECT_THAT(ranks(slowest), ElementsAre(0, 1, 2));
    EXPECT_FALSE(slowest.one_node);
}

// Many programs report on rank 0 only. Nothing is known of the other ranks, so they come last, and
// nobody is blamed.
TEST(Hang, WhoNamesNoStepComesLast) {
    const Slowest slowest = find_slowest(job({{9, -1}, {-1, -1}}));
    EXPECT_THAT(ranks(slowest), ElementsAre(0, 1, 2));
    EXPECT_FALSE(slowest.one_node);
    EXPECT_FALSE(find_slowest(job({{9, 9}, {-1, -1}})).one_node);
    EXPECT_FALSE(find_slowest(job({{-1, -1}, {-1, -1}})).one_node);
}

// With one node there is nothing to compare. A node whose workers have all ended does not wait.
TEST(Hang, OneNodeAloneIsNotBlamed) {
    EXPECT_FALSE(find_slowest(job({{3, 4}})).one_node);
    EXPECT_FALSE(find_slowest(job({{3, 4}, {-2, -2}})).one_node);
    EXPECT_THAT(find_slowest(job({{-2, -2}})).workers, IsEmpty());
}

// A node may stand still for 0.5 L without effect, and its reports then come late. 10 + 30 + 5 s.
TEST(Hang, HalfALeaseIsAdded) {
    Limits with = limits(2, 2);
    with.hang_timeout = sec(30);
    EXPECT_EQ(hangs_at(at(10), with), at(45));
}

// What a user reads who has given the option to a program that reports nothing.
TEST(Hang, SaysHowToReport) {
    Limits with = limits(2, 2);
    with.hang_timeout = sec(30);
    EXPECT_EQ(
        unjudged_sentence(sec(35), with),
        "no rank has reported progress in 35.0 s, so --hang-timeout 30.0 s ends the job only if "
        "all its workers stand still in collectives of Gloo; to have it judged by its steps, let "
        "the program write a line such as step=17 to the descriptor that DDPRUN_PROGRESS_FD "
        "names");
}

// The three parts of the line: how long, against which limit, and where to look.
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
