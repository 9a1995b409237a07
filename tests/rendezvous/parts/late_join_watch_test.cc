// When the leader looks for nodes that came late (PROTOCOL.md, rule 20). Pure. The lease is 10 s
// and the join interval 600 s. A look costs a walk over all nodes, so it must not come with each
// event.
#include "rendezvous/parts/late_join_watch.h"

#include <gmock/gmock.h>

#include "tests/support/builders.h"

namespace ddprun::rendezvous {
namespace {

using namespace ddprun::test;

// Two members run. `snapshot` is the newest that a worker reported.
LateJoinWatch::World world(std::int64_t snapshot, std::vector<std::string> waiting) {
    return {.members = 2, .ending = false, .snapshot = snapshot, .waiting = std::move(waiting)};
}

// c comes after snapshot 7. Right after snapshot 8 a restart costs little, so c is taken in.
TEST(LateJoinWatch, TakesThemInAtTheNextSnapshot) {
    const Limits limits = test::limits(1, 4);
    LateJoinWatch late;
    EXPECT_TRUE(late.is_due(at(0), -1));
    EXPECT_FALSE(late.look(at(0), world(7, {}), limits)) << "nobody waits";
    auto verdict = late.look(at(1), world(7, {"c"}), limits);
    ASSERT_TRUE(verdict);
    EXPECT_FALSE(verdict->regroup) << "snapshot 7 is older than the newcomer";
    EXPECT_EQ(verdict->until, at(601));
    EXPECT_TRUE(late.is_due(at(1.1), 8)) << "a new snapshot is looked at once";
    verdict = late.look(at(1.1), world(8, {"c"}), limits);
    ASSERT_TRUE(verdict);
    EXPECT_TRUE(verdict->regroup);
}

// A look comes each 0.05 L = 0.5 s, and at once when a node joins.
TEST(LateJoinWatch, LooksOnceInAWhileAndWhenSomebodyJoins) {
    const Limits limits = test::limits(1, 4);
    LateJoinWatch late;
    late.look(at(0), world(7, {"c"}), limits);
    EXPECT_FALSE(late.is_due(at(0.4), 7));
    EXPECT_EQ(late.next_look(), at(0.5));
    EXPECT_TRUE(late.is_due(at(0.5), 7));
    late.look_anew();
    EXPECT_TRUE(late.is_due(at(0.1), 7));
}

// The new generation was made without c. Its members need time to get to a snapshot, so the
// interval counts from its first look at 100.
TEST(LateJoinWatch, TheWaitBeginsAnewWithEachGeneration) {
    const Limits limits = test::limits(1, 4);
    LateJoinWatch late;
    late.look(at(0), world(7, {"c"}), limits);
    late.generation_began();
    const auto verdict = late.look(at(100), world(7, {"c"}), limits);
    ASSERT_TRUE(verdict);
    EXPECT_EQ(verdict->until, at(700));
}

}  // namespace
}  // namespace ddprun::rendezvous
