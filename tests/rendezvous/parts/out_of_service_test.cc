// What Slurm says of absent nodes, and when to ask it (PROTOCOL.md, rule 8). Pure; the answer is
// made up.
#include "rendezvous/parts/out_of_service.h"

#include <gmock/gmock.h>

#include "tests/support/builders.h"

namespace ddprun::rendezvous {
namespace {

using namespace ddprun::test;
using testing::ElementsAre;
using testing::IsEmpty;

using Ask = OutOfServiceNodes::Ask;

// At the start of a job nodes may just be slow, so the first question comes after a minute. After a
// loss it comes at once. Outside of Slurm it never comes.
TEST(OutOfServiceNodes, AreAskedAboutOnceAMinute) {
    OutOfServiceNodes nodes;
    EXPECT_EQ(nodes.asks_at(), kNever);
    nodes.gathering(at(10), Ask::later);
    EXPECT_EQ(nodes.asks_at(), at(70));
    nodes.gathering(at(20), Ask::now);
    EXPECT_EQ(nodes.asks_at(), at(20));
    // Slurm knows hosts, not tasks: n2 is named once.
    EXPECT_THAT(nodes.ask(at(20), {"n2/1", "n2/0", "n1"}), ElementsAre("n1", "n2"));
    EXPECT_EQ(nodes.asks_at(), at(80));
    nodes.gathering(at(90), Ask::never);
    EXPECT_EQ(nodes.asks_at(), kNever);
}

// Slurm's answer is for hosts and holds for all tasks on them. When n2 is back, nothing is left of
// it.
TEST(OutOfServiceNodes, AreNamedWithTheirState) {
    OutOfServiceNodes nodes;
    EXPECT_TRUE(nodes.said({{"n2", "drained"}}));
    EXPECT_FALSE(nodes.said({{"n2", "drained"}})) << "no news";
    EXPECT_TRUE(nodes.contains("n2/3"));
    EXPECT_FALSE(nodes.contains("n1"));
    EXPECT_THAT(nodes.of({"n1", "n2/0"}), ElementsAre("n2/0 (drained)"));
    EXPECT_TRUE(nodes.said({}));
    EXPECT_THAT(nodes.of({"n2"}), IsEmpty());
}

}  // namespace
}  // namespace ddprun::rendezvous
