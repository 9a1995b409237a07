#include "rendezvous/rules/lease_member.h"

#include <gtest/gtest.h>

#include "tests/support/builders.h"

using namespace ddprun;
using namespace ddprun::rendezvous;
using namespace ddprun::test;

namespace {

constexpr Generation g0{0}, g1{1};

Welcome welcome(std::uint64_t leader = 1, int max_nodes = 2) {
    return {node("leader", leader), Times{}, {}, max_nodes, {}, "", 0};
}

Ack ack(std::int64_t number, std::int64_t beat, std::int64_t entry) {
    Ack a;
    a.number = number;
    a.beat = beat;
    a.entry = EntryNumber{entry};
    return a;
}

Ack grant(std::int64_t number, std::int64_t beat, Generation held, double remaining) {
    Ack a = ack(number, beat, 0);
    a.held = held;
    a.remaining = sec(remaining);
    return a;
}

}  // namespace

// The first Ack of a connection is echoed at once, news of an entry too; others wait for the next
// beat.
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

// The deadline counts from when the named Beat was sent, not from when the Ack came; it only grows.
TEST(LeaseMember, CountsTheDeadlineFromItsOwnBeat) {
    LeaseMember member;
    member.welcomed(at(0), welcome());
    member.beat(at(1));
    member.run(g0, EntryNumber{0}, at(5));
    EXPECT_TRUE(member.ack(at(3), grant(1, 1, g0, 7)).deadline_moved);
    EXPECT_EQ(member.deadline(), at(8));
    EXPECT_FALSE(member.ack(at(3), grant(2, 1, g0, 6)).deadline_moved);
    EXPECT_FALSE(member.ack(at(3), grant(3, 1, g1, 9)).deadline_moved) << "of another generation";
    EXPECT_FALSE(member.ack(at(3), grant(4, 2, g0, 9)).deadline_moved) << "of a beat never sent";
    EXPECT_EQ(member.deadline(), at(8));
}

TEST(LeaseMember, GrantsWithoutADeadlineNeverEnd) {
    LeaseMember member;
    member.welcomed(at(0), welcome(1, 1));
    member.beat(at(0));
    EXPECT_EQ(member.granted_until(1, Duration::max()), kNever);
    EXPECT_EQ(member.granted_until(2, sec(1)), std::nullopt);
    EXPECT_EQ(member.next_beat(), kNever) << "a job of one node has no beats";
}

// A leader that has been succeeded may still talk: what it grants is nothing.
TEST(LeaseMember, IgnoresALeaderThatWasSucceeded) {
    LeaseMember member;
    member.welcomed(at(0), welcome());
    member.beat(at(0));
    member.run(g0, EntryNumber{1}, at(5));
    EXPECT_FALSE(member.ack(at(1), grant(1, 1, g0, 9)).accepted);
    EXPECT_EQ(member.deadline(), at(5));
    EXPECT_EQ(member.beat(at(1)).echo, 0);
}

TEST(LeaseMember, ForgetsNumbersWithTheirConnection) {
    LeaseMember member;
    member.welcomed(at(0), welcome());
    member.beat(at(0));
    member.ack(at(0.1), ack(7, 1, 0));
    member.disconnected();
    EXPECT_EQ(member.next_beat(), kNever);
    EXPECT_FALSE(member.ack(at(0.2), ack(8, 1, 0)).accepted);
    member.welcomed(at(1), welcome());
    EXPECT_EQ(member.granted_until(1, sec(5)), std::nullopt);
    const Beat beat = member.beat(at(1));
    EXPECT_EQ(beat.number, 1);
    EXPECT_EQ(beat.echo, 0);
    EXPECT_EQ(beat.seen, EntryNumber{0}) << "what it knows of the ledger stays";
    EXPECT_EQ(member.next_beat(), at(1.5));
}

// `silent` is about other leaders only: the one that asks is not counted, one that never acked
// neither.
TEST(LeaseMember, SaysHowLongOtherLeadersAreSilent) {
    LeaseMember member;
    member.welcomed(at(0), welcome(1));
    member.beat(at(0));
    member.ack(at(2), ack(1, 1, -1));
    EXPECT_EQ(member.beat(at(3)).silent, Duration::max());
    member.welcomed(at(4), welcome(2));
    EXPECT_EQ(member.beat(at(5)).silent, sec(3));
    member.welcomed(at(6), welcome(3));
    EXPECT_EQ(member.beat(at(7)).silent, sec(5));
}

// A vow is final: the floor rises when the workers are gone and never falls.
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

// A second connection to the same leader must not make a node forget when it heard that leader
// last: rule 7 (c) counts on it.
TEST(LeaseMember, RemembersALeaderItHasReconnectedTo) {
    LeaseMember m;
    m.welcomed(at(0), welcome(1));
    m.beat(at(0));
    m.ack(at(1), ack(1, 1, 0));
    m.welcomed(at(2), welcome(1));
    m.welcomed(at(3), welcome(2));
    EXPECT_EQ(m.beat(at(4)).silent, sec(3));
}
