// Who is called when the leader is lost, and who yields. The lease is 10 s: a turn is 1.5 s.
#include "rendezvous/rules/succession.h"

#include <gmock/gmock.h>

#include "tests/support/builders.h"

namespace ddprun::rendezvous {
namespace {

using namespace ddprun::test;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr Duration kLease = std::chrono::seconds{10};

Peer peer(const std::string& name) { return {node(name), "at " + name, 1}; }

std::vector<std::string> names(const std::vector<Peer>& peers) {
    std::vector<std::string> all;
    for (const Peer& each : peers) all.push_back(each.node.name);
    return all;
}

Caller caller(const std::string& self) {
    Caller c(node(self));
    c.learn(std::vector{peer("a"), peer("b"), peer("c")});
    c.led_by(peer("a"));
    return c;
}

// b has lost a: a once more, and then it is its own turn.
TEST(Caller, CallsTheLastLeaderAndLeadsWhenItsTurnComes) {
    Caller b = caller("b");
    Caller::Call call = b.begin(at(100), kLease, true);
    EXPECT_EQ(call.peer, peer("a"));
    EXPECT_EQ(call.until, at(101.5));
    EXPECT_FALSE(call.lead);
    call = b.next(at(100.1));
    EXPECT_EQ(call.peer.node, node("b"));
    EXPECT_TRUE(call.lead);
}

TEST(Caller, CallsWhoStandsBeforeItFirst) {
    Caller c = caller("c");
    c.begin(at(100), kLease, true);
    EXPECT_EQ(c.next(at(100.1)).peer, peer("b"));
    EXPECT_TRUE(c.next(at(100.2)).lead);
}

// The order begins at its start, whoever led last.
TEST(Caller, BeginsAtTheStartOfTheOrderAfterALaterLeader) {
    Caller b = caller("b");
    b.led_by(peer("c"));
    EXPECT_EQ(b.begin(at(100), kLease, true).peer, peer("c"));
    EXPECT_EQ(b.next(at(101)).peer, peer("a"));
    EXPECT_TRUE(b.next(at(102)).lead);
}

// Who does not share the ledger never leads; after a round it begins anew, a moment later.
TEST(Caller, LeadsOnlyIfItMay) {
    Caller b = caller("b");
    b.begin(at(100), kLease, false);
    EXPECT_EQ(b.next(at(100.1)).peer, peer("c"));
    const Caller::Call call = b.next(at(100.2));
    EXPECT_EQ(call.peer, peer("a"));
    EXPECT_EQ(call.from, at(100.4));
    EXPECT_EQ(call.until, at(101.9));
}

TEST(Caller, AloneAndNotAllowedCallsTheEndpoint) {
    Caller a(node("a"));
    Caller::Call call = a.begin(at(100), kLease, false);
    EXPECT_EQ(call.peer, Peer{});
    EXPECT_EQ(call.from, at(100.2));
    call = a.next(at(100.3));
    EXPECT_EQ(call.peer, Peer{});
    EXPECT_EQ(call.from, at(100.5));
}

// "Wait" is asked again until the turn is over.
TEST(Caller, WaitsForOneThatIsNotYetTheLeader) {
    Caller c = caller("c");
    c.begin(at(100), kLease, true);
    c.next(at(100.1));
    EXPECT_EQ(c.elsewhere(at(100.2), {}).peer, peer("b"));
    EXPECT_EQ(c.elsewhere(at(100.4), {}).from, at(100.6));
    EXPECT_TRUE(c.elsewhere(at(101.5), {}).lead) << "b's turn ends at 101.6";
}

TEST(Caller, FollowsPointersButNotForEver) {
    Caller c = caller("c");
    c.begin(at(100), kLease, true);
    for (int i = 0; i < Caller::kMostPointers; ++i)
        EXPECT_EQ(c.elsewhere(at(100), {"10.0.0.9", 7, {}}).peer.address, "10.0.0.9");
    EXPECT_EQ(c.elsewhere(at(100), {"10.0.0.9", 7, {}}).peer, peer("b"));
}

// A leader whose ledger was silent is told to rest: its own turn is passed over.
TEST(Caller, RestsAfterItWasToldTo) {
    Caller a = caller("a");
    a.begin(at(100), kLease, true);
    a.elsewhere(at(100), {"at b", 1, sec(30)});
    EXPECT_FALSE(a.next(at(101)).lead);
    a.begin(at(131), kLease, true);
    EXPECT_TRUE(a.begin(at(131), kLease, true).lead);
}

TEST(Order, IsMembersByRankThenOthers) {
    Assignment a = assignment(3, {node("c"), node("a")});
    for (Member& member : a.members) member.offer.service_port = 1;
    EXPECT_THAT(names(order_of(a.members, {peer("x"), peer("a"), peer("y")})),
                ElementsAre("c", "a", "x", "y"));
    a.members[0].offer.service_port = 0;
    EXPECT_THAT(names(order_of(a.members, {})), ElementsAre("a")) << "c cannot be called";
    EXPECT_THAT(order_of({}, {}), IsEmpty());
}

// Of a thousand each is told the same few: the first, and one of each part of the rest, so that
// somebody is left whichever rack goes. Up to 32 are told all.
TEST(Order, NamesTheFirstOfManyAndSomeOfTheRest) {
    std::vector<Member> many;
    for (int i = 0; i < 1016; ++i) {
        many.push_back({node(std::to_string(i)), offer(), i});
        many.back().offer.service_port = 1;
    }
    const std::vector<Peer> order = order_of(many, {peer("x")});
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

TEST(DormantAnswer, NamesTheLeaderThatWasHeardLately) {
    EXPECT_EQ(dormant_answer(peer("a"), at(100), at(104.9), kLease).address, "at a");
    EXPECT_EQ(dormant_answer(peer("a"), at(100), at(105), kLease), Elsewhere{});
    EXPECT_EQ(dormant_answer({}, kLongAgo, at(105), kLease), Elsewhere{});
}

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
