// Which generation this leader holds, and when the next one may be proposed (PROTOCOL.md, rules 3
// to 7). Pure. The lease is 10 s: H lies 8 s after the oldest echoed Ack, and the margin is 2 s.
#include "rendezvous/parts/claim.h"

#include <gmock/gmock.h>

#include "tests/support/builders.h"

namespace ddprun::rendezvous {
namespace {

using namespace ddprun::test;

constexpr Duration kLease = std::chrono::seconds{10};

// An entry about a generation of a and b. By default it makes that generation.
LedgerEntry entry(int number, int generation, EntryAct act = MakesGeneration{}) {
    LedgerEntry e;
    e.number = EntryNumber{number};
    e.act = act;
    e.assignment = assignment(generation, {node("a"), node("b")});
    return e;
}
// Generation 0 is held. Both have echoed an Ack that was sent at 1, so H is 9.
Claim held() {
    Claim claim;
    claim.recorded(entry(0, 0));
    claim.hold(at(0.5), kLease, false);
    claim.confirm(node("a"), at(1), at(1.1));
    claim.confirm(node("b"), at(1), at(1.1));
    return claim;
}

TEST(Claim, IsNothingBeforeTheFirstEntry) {
    const Claim claim;
    EXPECT_EQ(claim.entry(), kNoEntry);
    EXPECT_EQ(claim.newest(), kNoGeneration);
    EXPECT_FALSE(claim.holding());
    EXPECT_EQ(claim.may_follow_at(), kNever);
}

// While the generation goes on, no time is named. After its end the next one must wait until 11 (H
// and the margin): a member that is cut off trains until then.
TEST(Claim, MayBeFollowedAMarginAfterItsLease) {
    Claim claim = held();
    EXPECT_TRUE(claim.holding());
    EXPECT_FALSE(claim.is_over());
    EXPECT_EQ(claim.may_follow_at(), kNever) << "it goes on";
    claim.end_held();
    EXPECT_FALSE(claim.holding());
    EXPECT_TRUE(claim.is_over());
    // One tick later, because the comparison is strict.
    EXPECT_EQ(claim.may_follow_at(), at(11) + Duration{1});
}

// a says twice that its workers have exited. It still counts as one member.
TEST(Claim, IsCompleteWhenAllMembersAre) {
    Claim claim = held();
    claim.completed(node("a"));
    claim.completed(node("a"));
    EXPECT_TRUE(claim.some_completed());
    EXPECT_FALSE(claim.all_completed());
    claim.completed(node("b"));
    EXPECT_TRUE(claim.all_completed());
    claim.began();
    EXPECT_FALSE(claim.some_completed());
}

// Another leader has taken the generation over. But this leader granted a lease until 9, and a
// member may follow that one. If this leader forgot it and led again, it could start a generation
// too early.
TEST(Claim, Rule7d_RemembersItsOwnLeaseWhenAnotherTakesOver) {
    Claim claim = held();
    EXPECT_TRUE(claim.adopt(entry(1, 0, TakesOver{})));
    EXPECT_FALSE(claim.holding());
    EXPECT_EQ(claim.may_follow_at(), at(11) + Duration{1});
    EXPECT_FALSE(claim.is_safe_after_own(at(11)));
    EXPECT_TRUE(claim.is_safe_after_own(at(11.1)));
    EXPECT_TRUE(claim.adopt(entry(2, 0, TakesOver{})));
    EXPECT_FALSE(claim.is_safe_after_own(at(11))) << "also after a second takeover";
    // A new generation. This leader never held that one.
    EXPECT_FALSE(claim.adopt(entry(3, 1)));
    EXPECT_TRUE(claim.is_safe_after_own(at(0))) << "of another generation it held nothing";
}

// A newer entry does not bring an old generation back. Nodes that still run it must stop it.
TEST(Claim, WhatIsOverStaysOver) {
    Claim claim;
    claim.adopt(entry(0, 3));
    claim.count_as_over();
    claim.adopt(entry(1, 4));
    EXPECT_EQ(claim.over(), Generation{3});
    EXPECT_FALSE(claim.is_over());
}

}  // namespace
}  // namespace ddprun::rendezvous
