// Whether a node has a leader, and which service it calls without one. Pure; no connection is made.
// The lease is 10 s.
#include "agent/parts/leader_link.h"

#include <gmock/gmock.h>

#include "tests/support/builders.h"

namespace ddprun::agent {
namespace {

using namespace ddprun::test;

constexpr Duration kLease = std::chrono::seconds{10};

rendezvous::Peer peer(const std::string& name) { return {node(name), "at " + name, 1}; }
// a leads, and the order is a, b.
rendezvous::Welcome welcome() {
    rendezvous::Welcome w;
    w.at = peer("a");
    w.order = {peer("a"), peer("b")};
    return w;
}

// Node b loses its leader a, searches, and is welcomed again. The welcome must end the search, or b
// would go on to lead beside a.
TEST(LeaderLink, AWelcomeEndsTheSearch) {
    LeaderLink link(node("b"), at(1));
    EXPECT_FALSE(link.was_welcomed());
    EXPECT_EQ(link.lost_since(), at(1));
    EXPECT_FALSE(link.has_order());
    link.welcomed(welcome());
    EXPECT_TRUE(link.is_welcomed());
    EXPECT_TRUE(link.has_order());
    EXPECT_EQ(link.leader(), peer("a"));
    link.lost(at(5));
    link.disconnected();
    EXPECT_FALSE(link.is_welcomed());
    EXPECT_TRUE(link.was_welcomed());
    link.search(at(5), kLease, true);
    ASSERT_TRUE(link.call());
    EXPECT_EQ(link.call()->peer, peer("a")) << "the last leader once more";
    // a refuses the call.
    link.next(at(6));
    EXPECT_TRUE(link.call()->lead) << "then it is its own turn";
    link.wait_until(at(7));
    EXPECT_TRUE(link.waits());
    link.welcomed(welcome());
    EXPECT_FALSE(link.call());
    EXPECT_FALSE(link.waits());
}

// The rendezvous belongs to another job. Another call would get the same answer.
TEST(LeaderLink, WhoIsRefusedCallsNobody) {
    LeaderLink link(node("b"), at(1));
    link.welcomed(welcome());
    link.refused();
    EXPECT_TRUE(link.is_refused());
    EXPECT_FALSE(link.is_welcomed());
}

}  // namespace
}  // namespace ddprun::agent
