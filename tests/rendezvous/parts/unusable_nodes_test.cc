// Nodes that can run no worker.
#include "rendezvous/parts/unusable_nodes.h"

#include <gmock/gmock.h>

#include "tests/support/builders.h"

namespace ddprun::rendezvous {
namespace {

using namespace ddprun::test;

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
