// When the leader looks for nodes that came late. The lease is 10 s, the join interval 600 s.
#include "rendezvous/parts/late_join_watch.h"

#include <gmock/gmock.h>

#include "tests/support/builders.h"

namespace ddprun::rendezvous {
namespace {

using namespace ddprun::test;

LateJoinWatch::World world(std::int64_t snapshot, std::vector<std::string> waiting) {
    return {.members = 2, .ending = false, .snapshot = snapshot, .waiting = std::move(waiting)};
}

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

TEST(LateJoinWatch, LooksOnceInAWhileAndWhenSomebodyJoins) {
    const Limits limits = test::limits(1, 4);
    LateJoinWatch late;
    late.look(at(0), world(7, {"c"}), limits);
    EXPECT_FALSE(late.is_due(at(0.4), 7));
    EXPECT_EQ(late.next_look(), at(0.5));
    EXPECT_TRUE(late.is_due(at(0.5), 7));
    late.somebody_joined();
    EXPECT_TRUE(late.is_due(at(0.1), 7));
}

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
