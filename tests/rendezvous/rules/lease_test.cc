// The leader's half of the lease (PROTOCOL.md, rules 3 and 5): until when the leader may hold a
// generation. Pure. With a lease of 10 s an echoed Ack is good for 8 s (0.8 L), and 2 s of margin
// (0.2 L) follow.
#include "rendezvous/rules/lease.h"

#include <gtest/gtest.h>

#include "tests/support/builders.h"

using namespace ddprun;
using namespace ddprun::rendezvous;
using namespace ddprun::test;

namespace {

Lease lease_of_two() { return Lease(members({node("a"), node("b")}), sec(10), false); }

}  // namespace

// A lease without the echo of b would not notice that b never came. So it begins when all members
// have echoed, and the oldest Ack counts: 1 + 8 = 9.
TEST(Lease, IsGrantedWhenAllHaveConfirmed) {
    Lease lease = lease_of_two();
    lease.confirm(node("a"), at(2), at(2.1));
    EXPECT_FALSE(lease.granted());
    // What was never granted cannot pass.
    EXPECT_FALSE(lease.expired(at(100)));
    lease.confirm(node("b"), at(1), at(2.2));
    EXPECT_TRUE(lease.granted());
    EXPECT_EQ(lease.held_until(), at(9));
    EXPECT_EQ(lease.safe_after(), at(11));
}

// a is heard each second, b never again. If the lease grew with a, both parts of a split network
// would go on. The log names b.
TEST(Lease, FollowsTheSlowestMember) {
    Lease lease = lease_of_two();
    lease.confirm(node("a"), at(1), at(1));
    lease.confirm(node("b"), at(1), at(1));
    for (int s = 2; s < 9; ++s) lease.confirm(node("a"), at(s), at(s));
    EXPECT_EQ(lease.held_until(), at(9));
    EXPECT_EQ(lease.slowest(), std::pair(node("b"), at(1)));
    EXPECT_FALSE(lease.expired(at(9)));
    EXPECT_TRUE(lease.expired(at(9) + Duration{1}));
}

// After a stall the members' deadlines are near. If less than 4.5 s (0.45 L) were left when the
// lease grew, all members get an Ack at once, since the usual Ack could come too late for one of
// them.
TEST(Lease, AsksForAPushWhenItGrewLate) {
    Lease lease = lease_of_two();
    EXPECT_FALSE(lease.confirm(node("a"), at(1), at(1)));
    EXPECT_FALSE(lease.confirm(node("b"), at(1), at(1))) << "the first grant is not a push";
    EXPECT_FALSE(lease.confirm(node("a"), at(4), at(5))) << "it did not grow";
    EXPECT_TRUE(lease.confirm(node("b"), at(3), at(5))) << "4 s of 10 were left";
    EXPECT_EQ(lease.held_until(), at(11));
    EXPECT_FALSE(lease.confirm(node("b"), at(4), at(6))) << "5 s of 10 were left";
}

// An old echo, another incarnation of b, and a node that is no member: none of them moves the
// lease.
TEST(Lease, IgnoresOldWordsAndStrangers) {
    Lease lease = lease_of_two();
    lease.confirm(node("a"), at(3), at(3));
    lease.confirm(node("b"), at(3), at(3));
    lease.confirm(node("b"), at(1), at(4));
    lease.confirm(node("b", 2), at(4), at(4));
    lease.confirm(node("c"), at(4), at(4));
    EXPECT_EQ(lease.held_until(), at(11));
    EXPECT_TRUE(lease.has(node("b")));
    EXPECT_FALSE(lease.has(node("b", 2)));
}

// Nobody else could train, so there is nothing to wait for.
TEST(Lease, OfOneNodeNeverEnds) {
    const Lease lease(members({node("a")}), sec(10), true);
    EXPECT_TRUE(lease.granted());
    EXPECT_EQ(lease.held_until(), kNever);
    EXPECT_EQ(lease.safe_after(), kNever);
    EXPECT_FALSE(lease.expired(at(1e6)));
}
