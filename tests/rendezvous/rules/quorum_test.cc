#include "rendezvous/rules/quorum.h"

#include <gtest/gtest.h>

#include "tests/support/builders.h"

using namespace ddprun;
using namespace ddprun::rendezvous;
using namespace ddprun::test;
using What = QuorumVerdict::What;

namespace {

// `here` nodes came one after the other until second 10, when the minimum was reached.
QuorumInput first_with(int here) {
    QuorumInput input;
    input.here = here;
    input.first = true;
    input.since_gathering = at(0);
    input.since_min = at(10);
    return input;
}

}  // namespace

TEST(Quorum, ClosesAtOnceWhenAllAreHere) {
    EXPECT_EQ(decide_quorum(first_with(4), limits(2, 4), at(10)).what, What::closes);
    EXPECT_EQ(decide_quorum(first_with(5), limits(2, 4), at(10)).what, What::closes);
}

// With MIN < MAX the first generation waits 30 s from the moment the minimum was there.
TEST(Quorum, WaitsForStragglersUntilLastCall) {
    const QuorumVerdict waits = decide_quorum(first_with(3), limits(2, 4), at(12));
    EXPECT_EQ(waits.what, What::waits);
    EXPECT_EQ(waits.until, at(40));
    EXPECT_EQ(waits.sentence, "still waiting: 3 of 4 nodes joined (min 2)");
    EXPECT_EQ(decide_quorum(first_with(3), limits(2, 4), at(39.999)).what, What::waits);
    EXPECT_EQ(decide_quorum(first_with(3), limits(2, 4), at(40)).what, What::closes);
}

// Later there is no last call; only members that are expected back are waited for.
TEST(Quorum, WaitsLaterOnlyForMembers) {
    QuorumInput input = first_with(3);
    input.first = false;
    EXPECT_EQ(decide_quorum(input, limits(2, 4), at(10)).what, What::closes);
    input.wait_for_members = at(16);
    EXPECT_EQ(decide_quorum(input, limits(2, 4), at(10)).until, at(16));
    EXPECT_EQ(decide_quorum(input, limits(2, 4), at(16)).what, What::closes);
}

TEST(Quorum, SaysWhoIsMissingAndWhenItGivesUp) {
    QuorumInput input = first_with(5);
    input.missing = {"gpu03", "gpu04", "gpu06"};
    const QuorumVerdict waits = decide_quorum(input, limits(6, 8), at(330));
    EXPECT_EQ(waits.what, What::waits);
    EXPECT_EQ(waits.until, at(600));
    EXPECT_EQ(waits.sentence,
              "still waiting: 5 of 8 nodes joined (min 6), missing gpu03, gpu04, gpu06; giving up "
              "in 4 m 30 s");
}

TEST(Quorum, IsImpossibleAfterTheJoinTimeout) {
    QuorumInput input = first_with(1);
    input.since_min = kNever;
    EXPECT_EQ(decide_quorum(input, limits(2, 2), at(599.9)).what, What::waits);
    const QuorumVerdict verdict = decide_quorum(input, limits(2, 2), at(600));
    EXPECT_EQ(verdict.what, What::impossible);
    EXPECT_EQ(verdict.sentence,
              "too few nodes: 1 of 2 nodes joined within 10 m 00 s (--join-timeout)");
}

// Only who may still come is waited for: the last call too is for nobody else.
TEST(Quorum, DoesNotWaitForNodesOutOfService) {
    QuorumInput input = first_with(3);
    input.missing = {"n3", "n4"};
    input.out_of_service = {"n3 (drained)"};
    EXPECT_EQ(decide_quorum(input, limits(4, 5), at(12)).sentence,
              "still waiting: 3 of 5 nodes joined (min 4), missing n3, n4; not waiting for n3 "
              "(drained), which Slurm has taken out of service; giving up in 9 m 48 s");
    EXPECT_EQ(decide_quorum(input, limits(3, 5), at(12)).what, What::waits);
    input.out_of_service = {"n3 (drained)", "n4 (down)"};
    EXPECT_EQ(decide_quorum(input, limits(3, 5), at(12)).what, What::closes);
    const QuorumVerdict verdict = decide_quorum(input, limits(4, 5), at(12));
    EXPECT_EQ(verdict.what, What::impossible);
    EXPECT_EQ(verdict.sentence,
              "too few nodes: 3 of 5 nodes joined (min 4), missing n3, n4; not waiting for "
              "n3 (drained), n4 (down), which Slurm has taken out of service");
}

TEST(Quorum, CountsTasksAsTasks) {
    Limits tasks = limits(2, 4);
    tasks.order = {"a/0", "a/1", "b/0", "b/1"};
    EXPECT_EQ(decide_quorum(first_with(3), tasks, at(12)).sentence,
              "still waiting: 3 of 4 tasks joined (min 2)");
}

TEST(Quorum, NamesAtMostThree) {
    EXPECT_EQ(name_some({}), "");
    EXPECT_EQ(name_some({"a"}), "a");
    EXPECT_EQ(name_some({"a", "b", "c"}), "a, b, c");
    EXPECT_EQ(name_some({"a", "b", "c", "d", "e"}), "a, b, c and 2 more");
    EXPECT_EQ(name_some({"a/1", "b/0", "b/1", "c", "b/2"}), "a/1, b (3 tasks), c");
}
