#include "rendezvous/rules/lease.h"

#include <gtest/gtest.h>

#include "tests/support/builders.h"

using namespace ddprun;
using namespace ddprun::rendezvous;
using namespace ddprun::test;

namespace {

Lease lease_of_two() { return Lease(members({node("a"), node("b")}), sec(10), false); }

}  // namespace

// Nothing is granted before every member has confirmed; then the least recent one counts, plus 0.8
// lease.
TEST(Lease, IsGrantedWhenAllHaveConfirmed) {
    Lease lease = lease_of_two();
    lease.confirm(node("a"), at(2), at(2.1));
    EXPECT_FALSE(lease.granted());
    EXPECT_FALSE(lease.expired(at(100)));
    lease.confirm(node("b"), at(1), at(2.2));
    EXPECT_TRUE(lease.granted());
    EXPECT_EQ(lease.held_until(), at(9));
    EXPECT_EQ(lease.safe_after(), at(11));
}

// The silence of one holds the lease back for all, and it is the one that is named.
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

// A confirmation that comes late in the lease is worth telling at once; one in good time is not.
TEST(Lease, AsksForAPushWhenItGrewLate) {
    Lease lease = lease_of_two();
    EXPECT_FALSE(lease.confirm(node("a"), at(1), at(1)));
    EXPECT_FALSE(lease.confirm(node("b"), at(1), at(1))) << "the first grant is not a push";
    EXPECT_FALSE(lease.confirm(node("a"), at(4), at(5))) << "it did not grow";
    EXPECT_TRUE(lease.confirm(node("b"), at(3), at(5))) << "4 s of 10 were left";
    EXPECT_EQ(lease.held_until(), at(11));
    EXPECT_FALSE(lease.confirm(node("b"), at(4), at(6))) << "5 s of 10 were left";
}

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

TEST(Lease, OfOneNodeNeverEnds) {
    const Lease lease(members({node("a")}), sec(10), true);
    EXPECT_TRUE(lease.granted());
    EXPECT_EQ(lease.held_until(), kNever);
    EXPECT_EQ(lease.safe_after(), kNever);
    EXPECT_FALSE(lease.expired(at(1e6)));
}
