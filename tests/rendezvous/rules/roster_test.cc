// The leader's list of nodes: which of them are silent, and what is forgotten when another node
// leads. Pure. The lease is 10 s.
#include "rendezvous/rules/roster.h"

#include <gmock/gmock.h>

#include "tests/support/builders.h"

namespace ddprun::rendezvous {
namespace {

using namespace ddprun::test;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr Duration kLease = std::chrono::seconds{10};

// Connects a node, lets it join, and lets its newest Beat come at `heard`.
void joins(Roster& roster, const std::string& name, int session, double heard) {
    roster.hello(Session{session}, node(name));
    roster.find(node(name))->joined = true;
    roster.find(node(name))->beat_came = at(heard);
}

// A frozen node keeps its connection open. After 0.6 L = 6 s without a Beat the leader closes it,
// so that the node counts as absent. l is the leader's own node: nobody is silent to oneself.
TEST(Roster, NamesTheConnectionsOnWhichNothingCameForTooLong) {
    Roster roster;
    joins(roster, "a", 1, 0);
    joins(roster, "b", 2, 5);
    joins(roster, "l", 3, 0);
    // Exactly 6 s are not too long yet.
    EXPECT_THAT(roster.silent(at(6), kLease, node("l")), IsEmpty());
    EXPECT_THAT(roster.silent(at(6.1), kLease, node("l")), ElementsAre(Session{1}))
        << "nobody is silent to oneself";
    // A connection that is gone already cannot be closed.
    roster.lost(Session{1});
    EXPECT_THAT(roster.silent(at(6.1), kLease, node("l")), IsEmpty());
}

// A leader that was frozen itself finds all Beats old when it wakes, because it has not read them
// yet. So it judges nobody when more than 0.3 L = 3 s passed since its last step. A look comes each
// 0.1 L = 1 s.
TEST(Roster, LooksTenTimesALeaseAndNotAfterAStallOfItsOwn) {
    Roster roster;
    roster.forget(at(0));
    EXPECT_EQ(roster.looks_for_silence(at(0.1), kLease), Roster::Look::due);
    EXPECT_EQ(roster.looks_for_silence(at(1.0), kLease), Roster::Look::not_due);
    EXPECT_EQ(roster.looks_for_silence(at(1.1), kLease), Roster::Look::due);
    // 3.1 s after the step at 1.1.
    EXPECT_EQ(roster.looks_for_silence(at(4.2), kLease), Roster::Look::stalled);
    EXPECT_EQ(roster.looks_for_silence(at(5.2), kLease), Roster::Look::due);
}

// The node stops leading, and perhaps leads again later. By then its list of connections is old.
// That a process is gone stays true for ever. Ack numbers start again with each activation.
TEST(Roster, KeepsOnlyItsProofsWhenAnotherLeads) {
    Roster roster;
    joins(roster, "a", 1, 0);
    EXPECT_TRUE(roster.set_gone(node("b"), at(1)));
    EXPECT_FALSE(roster.set_gone(node("b"), at(2))) << "no news";
    roster.next_ack();
    roster.forget(at(3));
    EXPECT_EQ(roster.find(node("a")), nullptr);
    EXPECT_EQ(roster.of(Session{1}), nullptr);
    EXPECT_EQ(roster.gone_since(node("b")), at(1));
    EXPECT_EQ(roster.next_ack(), 1);
}

// What a node has confirmed stays true on a new connection, so the lease does not break. All else
// belongs to the old connection: the leader must send the assignment again.
TEST(Roster, ANewConnectionReplacesTheOld) {
    Roster roster;
    joins(roster, "a", 1, 0);
    roster.find(node("a"))->confirmed = at(1);
    roster.find(node("a"))->assigned = Generation{3};
    EXPECT_EQ(roster.hello(Session{2}, node("a")), Session{1});
    EXPECT_EQ(roster.of(Session{1}), nullptr);
    const NodeState* state = roster.of(Session{2});
    ASSERT_NE(state, nullptr);
    EXPECT_EQ(state->confirmed, at(1));
    EXPECT_FALSE(state->assigned);
    EXPECT_FALSE(state->connected()) << "it has not joined yet";
}

}  // namespace
}  // namespace ddprun::rendezvous
