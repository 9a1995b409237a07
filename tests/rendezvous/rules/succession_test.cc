// Which node is called when the leader is lost, and which leader yields (PROTOCOL.md, rules 10 and
// 11). Pure, without any connection: a test gives the time and reads the next call. The lease is
// 10 s, so a turn lasts 1.5 s (0.15 L) and a pause 0.2 s (0.02 L).
#include "rendezvous/rules/succession.h"

#include <gmock/gmock.h>

#include "tests/support/builders.h"

namespace ddprun::rendezvous {
namespace {

using namespace ddprun::test;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr Duration kSuccessionLease = std::chrono::seconds{10};

// A node that can be called. Any port will do, but 0 means that nobody can call it.
Peer peer(const std::string& name) { return {node(name), "at " + name, 1}; }

std::vector<std::string> names(const std::vector<Peer>& peers) {
    std::vector<std::string> all;
    for (const Peer& each : peers) all.push_back(each.node.name);
    return all;
}

// The node `self` in a job that a leads. All nodes know the order a, b, c.
Caller caller(const std::string& self) {
    Caller c(node(self));
    c.learn(std::vector{peer("a"), peer("b"), peer("c")});
    c.led_by(peer("a"));
    return c;
}

// The connection to a breaks. b calls a once more, because a broken connection proves nothing. a
// refuses at 100.1, and b is next in the order: it leads.
TEST(Caller, CallsTheLastLeaderAndLeadsWhenItsTurnComes) {
    Caller b = caller("b");
    Caller::Call call = b.begin(at(100), kSuccessionLease, true);
    EXPECT_EQ(call.peer, peer("a"));
    EXPECT_EQ(call.until, at(101.5));
    EXPECT_FALSE(call.lead);
    call = b.next(at(100.1));
    EXPECT_EQ(call.peer.node, node("b"));
    EXPECT_TRUE(call.lead);
}

// c calls b before it leads itself. If it led at once, b and c would both lead, and the ledger
// would have to decide between them.
TEST(Caller, CallsWhoStandsBeforeItFirst) {
    Caller c = caller("c");
    c.begin(at(100), kSuccessionLease, true);
    EXPECT_EQ(c.next(at(100.1)).peer, peer("b"));
    EXPECT_TRUE(c.next(at(100.2)).lead);
}

// c led last, because a and b were away for a moment. When c is lost too, all nodes begin at the
// start of the same order. Otherwise they would meet at different nodes.
TEST(Caller, BeginsAtTheStartOfTheOrderAfterALaterLeader) {
    Caller b = caller("b");
    b.led_by(peer("c"));
    EXPECT_EQ(b.begin(at(100), kSuccessionLease, true).peer, peer("c"));
    EXPECT_EQ(b.next(at(101)).peer, peer("a"));
    EXPECT_TRUE(b.next(at(102)).lead);
}

// b has not found the leader's ledger by its mark, so it must not lead: it would write into another
// ledger. It passes over its own turn. The second round starts 0.2 s later, so that a round of
// refused calls does not become a busy loop.
TEST(Caller, LeadsOnlyIfItMay) {
    Caller b = caller("b");
    b.begin(at(100), kSuccessionLease, false);
    // The order is a, b, c. b's own turn is left out.
    EXPECT_EQ(b.next(at(100.1)).peer, peer("c"));
    const Caller::Call call = b.next(at(100.2));
    EXPECT_EQ(call.peer, peer("a"));
    EXPECT_EQ(call.from, at(100.4));
    EXPECT_EQ(call.until, at(101.9));
}

// A newcomer has no leader yet and has heard of no order. The empty peer stands for the endpoint
// that all nodes are given.
TEST(Caller, AloneAndNotAllowedCallsTheEndpoint) {
    Caller a(node("a"));
    Caller::Call call = a.begin(at(100), kSuccessionLease, false);
    EXPECT_EQ(call.peer, Peer{});
    EXPECT_EQ(call.from, at(100.2));
    call = a.next(at(100.3));
    EXPECT_EQ(call.peer, Peer{});
    EXPECT_EQ(call.from, at(100.5));
}

// b answers "wait": it is about to lead, but does not yet. c asks again each 0.2 s until b's turn
// is over. If c went on at once, it would lead beside b.
TEST(Caller, WaitsForOneThatIsNotYetTheLeader) {
    Caller c = caller("c");
    c.begin(at(100), kSuccessionLease, true);
    c.next(at(100.1));
    EXPECT_EQ(c.elsewhere(at(100.2), {}).peer, peer("b"));
    EXPECT_EQ(c.elsewhere(at(100.4), {}).from, at(100.6));
    EXPECT_TRUE(c.elsewhere(at(101.5), {}).lead) << "b's turn ends at 101.6";
}

// A dormant service sends c to another address. Two services may send it to each other while
// leaders change. After four pointers the next node of the order is called.
TEST(Caller, FollowsPointersButNotForEver) {
    Caller c = caller("c");
    c.begin(at(100), kSuccessionLease, true);
    for (int i = 0; i < Caller::kMostPointers; ++i)
        EXPECT_EQ(c.elsewhere(at(100), {"10.0.0.9", 7, {}}).peer.address, "10.0.0.9");
    EXPECT_EQ(c.elsewhere(at(100), {"10.0.0.9", 7, {}}).peer, peer("b"));
}

// The leader's ledger does not answer. It sends its nodes to the successor, and its own node a away
// from leading for 30 s. Otherwise a would lead again at once, with the same silent ledger.
TEST(Caller, Rule11f_RestsAfterItWasToldTo) {
    Caller a = caller("a");
    a.begin(at(100), kSuccessionLease, true);
    a.elsewhere(at(100), {"at b", 1, sec(30)});
    EXPECT_FALSE(a.next(at(101)).lead);
    EXPECT_FALSE(a.begin(at(129), kSuccessionLease, true).lead) << "it rests still";
    EXPECT_TRUE(a.begin(at(131), kSuccessionLease, true).lead);
}

// c has rank 0 and a has rank 1, so they come first. a stands in the other list as well, and is
// named once.
TEST(Order, IsMembersByRankThenOthers) {
    Assignment a = assignment(3, {node("c"), node("a")});
    for (Member& member : a.members) member.offer.service_port = 1;
    EXPECT_THAT(names(order_of(a.members, {peer("x"), peer("a"), peer("y")})),
                ElementsAre("c", "a", "x", "y"));
    // A port of 0: this node runs no service.
    a.members[0].offer.service_port = 0;
    EXPECT_THAT(names(order_of(a.members, {})), ElementsAre("a")) << "c cannot be called";
    EXPECT_THAT(order_of({}, {}), IsEmpty());
}

// Each node gets the order, so it must stay short in a job of a thousand nodes. It holds the first
// 16 members, and 16 spread evenly over the rest: one rack that fails cannot take them all. Up to
// 32 members are all named.
TEST(Order, Rule10f_NamesTheFirstOfManyAndSomeOfTheRest) {
    std::vector<Member> many;
    for (int i = 0; i < 1016; ++i) {
        many.push_back({node(std::to_string(i)), offer(), i});
        many.back().offer.service_port = 1;
    }
    const std::vector<Peer> order = order_of(many, {peer("x")});
    // 1016 = 16 first ones + 1000 others. Of those each 62.5th is named: 16, 78, …, 953.
    ASSERT_EQ(order.size(), kOrderFirst + kOrderSpread + 1);
    EXPECT_EQ(order[15].node, node("15"));
    EXPECT_EQ(order[16].node, node("16"));
    EXPECT_EQ(order[17].node, node("78"));
    EXPECT_EQ(order[31].node, node("953"));
    EXPECT_EQ(order[32].node, node("x"));
    many.resize(32);
    EXPECT_EQ(order_of(many, {}).back().node, node("31"));
    EXPECT_EQ(order_of(many, {}).size(), 32u);
}

// A dormant service sends a caller to the leader that its own node heard within 0.5 L = 5 s. A
// leader that it heard earlier may be the one that the caller has just lost.
TEST(DormantAnswer, Rule10g_NamesTheLeaderThatWasHeardLately) {
    EXPECT_EQ(dormant_answer(peer("a"), at(100), at(104.9), kSuccessionLease).address, "at a");
    EXPECT_EQ(dormant_answer(peer("a"), at(100), at(105), kSuccessionLease), Elsewhere{});
    EXPECT_EQ(dormant_answer({}, kLongAgo, at(105), kSuccessionLease), Elsewhere{});
}

// Two leaders may be active after a split. If none yields, their nodes stay divided. A leader that
// holds a generation wins if its entry is not older; among leaders that only gather, the place in
// the order decides.
TEST(Yields, ToWhoHoldsOrGathersAndStandsEarlier) {
    const EntryNumber three{3}, four{4};
    const Standing holds{node("b"), true, Generation{2}, three};
    const Standing gathers{node("b"), true, kNoGeneration, three};
    const Standing dormant{node("b"), false, kNoGeneration, three};
    EXPECT_TRUE(yields_to(holds, three, false));
    EXPECT_FALSE(yields_to(holds, four, true)) << "it is succeeded, and does not know yet";
    EXPECT_TRUE(yields_to(gathers, three, true));
    EXPECT_FALSE(yields_to(gathers, three, false));
    EXPECT_FALSE(yields_to(dormant, three, true));
}

}  // namespace
}  // namespace ddprun::rendezvous
