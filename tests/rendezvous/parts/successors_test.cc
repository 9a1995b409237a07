// In which order nodes lead after this leader, and which one stands by (PROTOCOL.md, rules 10 to
// 12). Pure.
#include "rendezvous/parts/successors.h"

#include <gmock/gmock.h>

#include "tests/support/builders.h"

namespace ddprun::rendezvous {
namespace {

using namespace ddprun::test;
using testing::ElementsAre;

Peer peer(const std::string& name) { return {node(name), name, 1}; }
// A connected node with a service of its own, which could lead.
void joins(Roster& roster, const std::string& name, int session) {
    roster.hello(Session{session}, node(name));
    NodeState* state = roster.find(node(name));
    state->joined = true;
    state->offer.address = name;
    state->offer.service_port = 1;
}

// l leads; a and b are members; d and then c have come as spares. Spares stand in the order of
// arrival, as all nodes must agree on one order.
TEST(Successors, AreTheMembersThenThisLeaderThenTheOthersAsTheyCame) {
    Roster roster;
    Successors successors;
    for (const char* name : {"d", "c"}) {
        joins(roster, name, name[0]);
        successors.arrived(node(name));
    }
    std::vector<Member> members = test::members({node("a"), node("b")});
    for (Member& member : members) member.offer.service_port = 1;
    members[0].offer.address = "a";
    members[1].offer.address = "b";
    EXPECT_THAT(successors.order(members, peer("l"), roster),
                ElementsAre(peer("a"), peer("b"), peer("l"), peer("d"), peer("c")));
    roster.lost(Session{'d'});
    EXPECT_THAT(successors.order({}, peer("l"), roster), ElementsAre(peer("l"), peer("c")))
        << "who is not connected stands in it as a member only";
}

// The keeper of the leader speaks to the node that the others will find leading. a comes first in
// the order but is not connected, and l is the leader itself.
TEST(Successors, Rule12f_TheFirstThatIsConnectedStandsBy) {
    Roster roster;
    joins(roster, "b", 2);
    const std::vector<Peer> order{peer("a"), peer("l"), peer("b")};
    EXPECT_EQ(Successors::next(order, node("l"), roster), peer("b"));
    EXPECT_EQ(Successors::next({peer("l")}, node("l"), roster), std::nullopt);
    Successors successors;
    EXPECT_FALSE(successors.stands_by(std::nullopt));
    EXPECT_TRUE(successors.stands_by(peer("b")));
    EXPECT_FALSE(successors.stands_by(peer("b"))) << "it stands by already";
    EXPECT_TRUE(successors.stands_by(std::nullopt));
}

}  // namespace
}  // namespace ddprun::rendezvous
