// When a node that comes late is taken in (PROTOCOL.md, rule 20). Pure functions. To take it in,
// all workers stop and start again, so the moment matters.
#include "rendezvous/rules/late_joiner.h"

#include <gtest/gtest.h>

#include "tests/support/builders.h"

namespace ddprun::rendezvous {
namespace {

using namespace ddprun::test;

// Three members run. gpu03 has been waiting since 100, and no snapshot was saved since.
LateJoiners one_late() {
    return {.members = 3, .names = {"gpu03"}, .since = at(100), .snapshot = false, .ending = false};
}

// Only a newcomer is a reason to stop the job, however long it has run.
TEST(LateJoiner, NobodyLateChangesNothing) {
    LateJoiners nobody = one_late();
    nobody.names.clear();
    const JoinVerdict verdict = decide_join(nobody, limits(2, 4), at(1000));
    EXPECT_FALSE(verdict.regroup);
    EXPECT_EQ(verdict.until, kNever);
}

// Right after a snapshot a restart repeats almost no work.
TEST(LateJoiner, IsTakenInAtTheNextSnapshot) {
    LateJoiners late = one_late();
    EXPECT_FALSE(decide_join(late, limits(2, 4), at(101)).regroup);
    late.snapshot = true;
    const JoinVerdict verdict = decide_join(late, limits(2, 4), at(101));
    EXPECT_TRUE(verdict.regroup);
    EXPECT_EQ(verdict.sentence, "gpu03 joined: growing from 3 to 4 of 4 nodes");
}

// A program may never report a snapshot. The join interval of 600 s bounds the wait: 100 + 600.
TEST(LateJoiner, Rule20b_WaitsNoLongerThanTheJoinInterval) {
    const JoinVerdict waits = decide_join(one_late(), limits(2, 4), at(699));
    EXPECT_FALSE(waits.regroup);
    EXPECT_EQ(waits.until, at(700));
    EXPECT_TRUE(decide_join(one_late(), limits(2, 4), at(700)).regroup);
}

// Three of three nodes run, so there is no room. And a generation that ends anyway is not stopped a
// second time: the newcomer is in the next one.
TEST(LateJoiner, IsASpareWhereThereIsNoRoomOrNoTime) {
    EXPECT_FALSE(decide_join(one_late(), limits(2, 3), at(9999)).regroup);
    LateJoiners late = one_late();
    late.ending = true;
    EXPECT_FALSE(decide_join(late, limits(2, 4), at(9999)).regroup);
}

// With --on-join=wait or spare the user has chosen that no newcomer stops the job.
TEST(LateJoiner, Rule20d_WaitAndSpareStopNobody) {
    for (const OnJoin choice : {OnJoin::wait, OnJoin::spare}) {
        Limits limited = limits(2, 4);
        limited.on_join = choice;
        EXPECT_FALSE(decide_join(one_late(), limited, at(9999)).regroup);
        EXPECT_EQ(decide_join(one_late(), limited, at(9999)).until, kNever);
    }
}

// The log of an idle node must say why it does nothing, and until when.
TEST(LateJoiner, HearsWhatItWaitsFor) {
    Limits some = limits(2, 4);
    EXPECT_EQ(parked_sentence(3, some),
              "3 of 4 nodes run without this one; it starts after the next snapshot, in "
              "10 m 00 s at the latest (--join-interval)");
    EXPECT_EQ(parked_sentence(4, some),
              "4 of 4 nodes run without this one; it is a spare and will replace one that is "
              "lost");
    some.on_join = OnJoin::wait;
    EXPECT_EQ(parked_sentence(3, some),
              "3 of 4 nodes run without this one; it starts with the next generation "
              "(--on-join=wait)");
}

}  // namespace
}  // namespace ddprun::rendezvous
