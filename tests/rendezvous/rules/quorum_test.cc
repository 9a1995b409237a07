// When a generation may close, and what the log says while it waits (PROTOCOL.md, rules 8 and 18).
// A pure function. Defaults: last call 30 s, join timeout 600 s.
#include "rendezvous/rules/quorum.h"

#include <gtest/gtest.h>

#include "tests/support/builders.h"

using namespace ddprun;
using namespace ddprun::rendezvous;
using namespace ddprun::test;
using What = QuorumVerdict::What;

namespace {

// The first generation of a job. Gathering began at 0, and `here` nodes have come by 10 s, when the
// minimum was reached. Nobody is named as missing.
QuorumInput first_with(int here) {
    QuorumInput input;
    input.here = here;
    input.first = true;
    input.since_gathering = at(0);
    input.since_min = at(10);
    return input;
}

}  // namespace

// Five are here where four fit: the fifth becomes a spare and delays nobody.
TEST(Quorum, ClosesAtOnceWhenAllAreHere) {
    EXPECT_EQ(decide_quorum(first_with(4), limits(2, 4), at(10)).what, What::closes);
    EXPECT_EQ(decide_quorum(first_with(5), limits(2, 4), at(10)).what, What::closes);
}

// At the start nodes are slow. With MIN here the job waits another 30 s (the last call), or it
// would start small and stop soon again to take in the others.
TEST(Quorum, WaitsForStragglersUntilLastCall) {
    const QuorumVerdict waits = decide_quorum(first_with(3), limits(2, 4), at(12));
    EXPECT_EQ(waits.what, What::waits);
    EXPECT_EQ(waits.until, at(40));
    EXPECT_EQ(waits.sentence, "still waiting: 3 of 4 nodes joined (min 2)");
    // Without a list of nodes, with --rdzv-endpoint, the user sees who has come.
    QuorumInput three = first_with(3);
    three.names = {"a", "b", "c"};
    EXPECT_EQ(decide_quorum(three, limits(2, 4), at(12)).sentence,
              "still waiting: 3 of 4 nodes joined (min 2): a, b, c");
    EXPECT_EQ(decide_quorum(first_with(3), limits(2, 4), at(39.999)).what, What::waits);
    EXPECT_EQ(decide_quorum(first_with(3), limits(2, 4), at(40)).what, What::closes);
}

// After a failure each second of waiting costs the whole job, so there is no last call. Only
// members that are expected back are waited for, here until 16.
TEST(Quorum, WaitsLaterOnlyForMembers) {
    QuorumInput input = first_with(3);
    input.first = false;
    EXPECT_EQ(decide_quorum(input, limits(2, 4), at(10)).what, What::closes);
    input.wait_for_members = at(16);
    EXPECT_EQ(decide_quorum(input, limits(2, 4), at(10)).until, at(16));
    EXPECT_EQ(decide_quorum(input, limits(2, 4), at(16)).what, What::closes);
}

// A user who looks into the log of a waiting job must see which nodes to look at. 600 − 330 s are
// left.
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

// One node never comes. Without this limit the job would hold its allocation and do nothing.
TEST(Quorum, IsImpossibleAfterTheJoinTimeout) {
    QuorumInput input = first_with(1);
    input.since_min = kNever;
    EXPECT_EQ(decide_quorum(input, limits(2, 2), at(599.9)).what, What::waits);
    const QuorumVerdict verdict = decide_quorum(input, limits(2, 2), at(600));
    EXPECT_EQ(verdict.what, What::impossible);
    EXPECT_EQ(verdict.sentence,
              "too few nodes: 1 of 2 nodes joined within 10 m 00 s (--join-timeout)");
}

// Slurm has drained n3, so it cannot come. While enough others may come, the job waits for those.
// When they cannot be enough, it ends at once and not only after ten minutes.
TEST(Quorum, Rule8g_DoesNotWaitForNodesOutOfService) {
    QuorumInput input = first_with(3);
    input.missing = {"n3", "n4"};
    input.out_of_service = {"n3 (drained)"};
    EXPECT_EQ(decide_quorum(input, limits(4, 5), at(12)).sentence,
              "still waiting: 3 of 5 nodes joined (min 4), missing n3, n4; not waiting for n3 "
              "(drained), which Slurm has taken out of service; giving up in 9 m 48 s");
    // n4 may still come, so the last call goes on. When n4 is down too, there is nobody to wait
    // for.
    EXPECT_EQ(decide_quorum(input, limits(3, 5), at(12)).what, What::waits);
    input.out_of_service = {"n3 (drained)", "n4 (down)"};
    EXPECT_EQ(decide_quorum(input, limits(3, 5), at(12)).what, What::closes);
    const QuorumVerdict verdict = decide_quorum(input, limits(4, 5), at(12));
    EXPECT_EQ(verdict.what, What::impossible);
    EXPECT_EQ(verdict.sentence,
              "too few nodes: 3 of 5 nodes joined (min 4), missing n3, n4; not waiting for "
              "n3 (drained), n4 (down), which Slurm has taken out of service");
}

// With --task-per-worker each task is a node of the protocol. The user counts tasks, so the log
// does too.
TEST(Quorum, CountsTasksAsTasks) {
    Limits tasks = limits(2, 4);
    tasks.order = {"a/0", "a/1", "b/0", "b/1"};
    EXPECT_EQ(decide_quorum(first_with(3), tasks, at(12)).sentence,
              "still waiting: 3 of 4 tasks joined (min 2)");
}

// A thousand missing nodes must not fill the log. Several tasks of one host are one name.
TEST(Quorum, NamesAtMostThree) {
    EXPECT_EQ(name_some({}), "");
    EXPECT_EQ(name_some({"a"}), "a");
    EXPECT_EQ(name_some({"a", "b", "c"}), "a, b, c");
    EXPECT_EQ(name_some({"a", "b", "c", "d", "e"}), "a, b, c and 2 more");
    EXPECT_EQ(name_some({"a/1", "b/0", "b/1", "c", "b/2"}), "a/1, b (3 tasks), c");
}
