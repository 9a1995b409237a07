// The list of nodes that said that they can run no worker. Pure.
#include "rendezvous/parts/unusable_nodes.h"

#include <gmock/gmock.h>

#include "tests/support/builders.h"

namespace ddprun::rendezvous {
namespace {

using namespace ddprun::test;

// n1 says so twice: its first reason stays, and it counts once. The wait for the others counts from
// the first node of all.
TEST(UnusableNodes, AreCountedFromTheFirst) {
    UnusableNodes nodes;
    EXPECT_EQ(nodes.since(), kNever);
    nodes.add("n2", "is unusable: no GPU", at(1));
    EXPECT_EQ(nodes.sentence(), "node n2 is unusable: no GPU");
    nodes.add("n1", "is unusable: no space", at(2));
    nodes.add("n1", "is unusable: again", at(3));
    EXPECT_EQ(nodes.count(), 2);
    EXPECT_EQ(nodes.since(), at(1));
    EXPECT_TRUE(nodes.contains("n1"));
    EXPECT_FALSE(nodes.contains("n3"));
    EXPECT_EQ(nodes.sentence(), "node n1 is unusable: no space; and 1 more");
}

}  // namespace
}  // namespace ddprun::rendezvous
