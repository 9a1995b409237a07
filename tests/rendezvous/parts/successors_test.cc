// In which order nodes lead after this leader, and who stands by.
#include "rendezvous/parts/successors.h"

#include <gmock/gmock.h>

#include "tests/support/builders.h"

namespace ddprun::rendezvous {
namespace {

using namespace ddprun::test;
using testing::ElementsAre;

Peer peer(const std::string& name) { return {node(name), name, 1}; }
// Connected, with a service of its own.
void joins(Roster& roster, const std::string& name, int session) {
    roster.hello(Session{session}, node(name));
    NodeState* state = roster.find(node(name));
    state->joined = true;
    state->offer.address = name;
    state->offer.service_port = 1;
}

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

TEST(Successors, TheFirstThatIsConnectedStandsBy) {
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
