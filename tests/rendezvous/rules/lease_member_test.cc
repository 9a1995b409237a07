// A node's half of the lease (PROTOCOL.md, rules 1, 2 and 4): its Beats, its echoes, its deadline
// and its floor. Pure, without any connection. The lease is the default of 10 s.
#include "rendezvous/rules/lease_member.h"

#include <gtest/gtest.h>

#include "tests/support/builders.h"

using namespace ddprun;
using namespace ddprun::rendezvous;
using namespace ddprun::test;

namespace {

constexpr Generation g0{0}, g1{1};

// `leader` is the leader's incarnation: another number is another leader. `max_nodes` 1 makes a job
// without Beats. Times are the defaults; the order and the ledger stay empty.
Welcome welcome(std::uint64_t leader = 1, int max_nodes = 2) {
    return {node("leader", leader), Times{}, {}, max_nodes, {}, "", 0};
}

// An Ack that grants nothing.
Ack ack(std::int64_t number, std::int64_t beat, std::int64_t entry) {
    Ack a;
    a.number = number;
    a.beat = beat;
    a.entry = EntryNumber{entry};
    return a;
}

// An Ack that leaves generation `held` another `remaining` seconds, counted from that Beat.
Ack grant(std::int64_t number, std::int64_t beat, Generation held, double remaining) {
    Ack a = ack(number, beat, 0);
    a.held = held;
    a.remaining = sec(remaining);
    return a;
}

}  // namespace

// Before the leader may count on a member, it needs the echo of an Ack. So the first Ack of a
// connection is echoed at once, and one with a newer entry too. Other echoes wait for the next
// Beat.
TEST(LeaseMember, EchoesAtOnceWhatTheLeaderWaitsFor) {
    LeaseMember member;
    member.welcomed(at(0), welcome());
    EXPECT_EQ(member.beat(at(0)).echo, 0);
    EXPECT_TRUE(member.ack(at(0.1), ack(1, 1, -1)).beat_now);
    EXPECT_EQ(member.beat(at(0.1)).echo, 1);
    EXPECT_FALSE(member.ack(at(0.2), ack(2, 2, -1)).beat_now);
    EXPECT_TRUE(member.ack(at(0.3), ack(3, 2, 0)).beat_now);
    EXPECT_EQ(member.seen(), EntryNumber{0});
    EXPECT_EQ(member.beat(at(0.3)).echo, 3);
}

// The deadline counts from the sending of the Beat, here 1 s, and not from the arrival of the Ack.
// A slow network then shortens a deadline and never lengthens it. If it lengthened one, workers
// would run beside the next generation.
TEST(LeaseMember, CountsTheDeadlineFromItsOwnBeat) {
    LeaseMember member;
    member.welcomed(at(0), welcome());
    member.beat(at(1));
    member.run(g0, EntryNumber{0}, at(5));
    // 1 + 7 = 8, although the Ack came at 3.
    EXPECT_TRUE(member.ack(at(3), grant(1, 1, g0, 7)).deadline_moved);
    EXPECT_EQ(member.deadline(), at(8));
    EXPECT_FALSE(member.ack(at(3), grant(2, 1, g0, 6)).deadline_moved);
    EXPECT_FALSE(member.ack(at(3), grant(3, 1, g1, 9)).deadline_moved) << "of another generation";
    EXPECT_FALSE(member.ack(at(3), grant(4, 2, g0, 9)).deadline_moved) << "of a beat never sent";
    EXPECT_EQ(member.deadline(), at(8));
}

// A job of one node has no lease: nobody else could train.
TEST(LeaseMember, GrantsWithoutADeadlineNeverEnd) {
    LeaseMember member;
    member.welcomed(at(0), welcome(1, 1));
    member.beat(at(0));
    EXPECT_EQ(member.granted_until(1, Duration::max()), kNever);
    EXPECT_EQ(member.granted_until(2, sec(1)), std::nullopt);
    EXPECT_EQ(member.next_beat(), kNever) << "a job of one node has no beats";
}

// A leader that was cut off does not know its successor and may still talk. The node has seen entry
// 1 and this Ack comes from entry 0, so it extends nothing and gets no echo.
TEST(LeaseMember, IgnoresALeaderThatWasSucceeded) {
    LeaseMember member;
    member.welcomed(at(0), welcome());
    member.beat(at(0));
    member.run(g0, EntryNumber{1}, at(5));
    EXPECT_FALSE(member.ack(at(1), grant(1, 1, g0, 9)).accepted);
    EXPECT_EQ(member.deadline(), at(5));
    EXPECT_EQ(member.beat(at(1)).echo, 0);
}

// Numbers of Beats and Acks belong to one connection. If an old number counted on the new one, the
// leader would take it for the echo of an Ack that never arrived.
TEST(LeaseMember, Rule2f_ForgetsNumbersWithTheirConnection) {
    LeaseMember member;
    member.welcomed(at(0), welcome());
    member.beat(at(0));
    member.ack(at(0.1), ack(7, 1, 0));
    member.disconnected();
    EXPECT_EQ(member.next_beat(), kNever);
    EXPECT_FALSE(member.ack(at(0.2), ack(8, 1, 0)).accepted);
    member.welcomed(at(1), welcome());
    // Beat 1 of the old connection is forgotten, and the new one has sent none yet.
    EXPECT_EQ(member.granted_until(1, sec(5)), std::nullopt);
    const Beat beat = member.beat(at(1));
    EXPECT_EQ(beat.number, 1);
    EXPECT_EQ(beat.echo, 0);
    EXPECT_EQ(beat.seen, EntryNumber{0}) << "what it knows of the ledger stays";
    EXPECT_EQ(member.next_beat(), at(1.5));
}

// Rule 7 (c) lets a new leader go on when no *other* leader has been heard for 1.0 L. So `silent`
// does not count the leader that asks. A leader that never sent an Ack has granted nothing and does
// not count either.
TEST(LeaseMember, Rule1e_SaysHowLongOtherLeadersAreSilent) {
    LeaseMember member;
    member.welcomed(at(0), welcome(1));
    member.beat(at(0));
    member.ack(at(2), ack(1, 1, -1));
    // Only leader 1 exists. There is no other one.
    EXPECT_EQ(member.beat(at(3)).silent, Duration::max());
    // Leader 1 acked at 2.
    member.welcomed(at(4), welcome(2));
    EXPECT_EQ(member.beat(at(5)).silent, sec(3));
    // Leader 2 sent no Ack, so leader 1 is still the last other one that was heard.
    member.welcomed(at(6), welcome(3));
    EXPECT_EQ(member.beat(at(7)).silent, sec(5));
}

// The floor is a vow: other nodes start the next generation because of it. So it rises only when
// all workers are gone, and it never falls.
TEST(LeaseMember, RaisesItsFloorWhenWorkersAreGone) {
    LeaseMember member;
    member.run(g1, EntryNumber{1}, at(5));
    EXPECT_EQ(member.floor(), kNoGeneration);
    member.stopped();
    EXPECT_EQ(member.floor(), g1);
    EXPECT_EQ(member.running(), kNoGeneration);
    EXPECT_EQ(member.deadline(), kNever);
    EXPECT_FALSE(member.raise_floor(g0));
    EXPECT_EQ(member.floor(), g1);
}

// A second connection to the same leader must not make the node forget when that leader was heard
// last. Otherwise `silent` would be too long, and rule 7c would let a new generation start too
// early.
TEST(LeaseMember, RemembersALeaderItHasReconnectedTo) {
    LeaseMember m;
    m.welcomed(at(0), welcome(1));
    m.beat(at(0));
    m.ack(at(1), ack(1, 1, 0));
    m.welcomed(at(2), welcome(1));
    m.welcomed(at(3), welcome(2));
    EXPECT_EQ(m.beat(at(4)).silent, sec(3));
}
