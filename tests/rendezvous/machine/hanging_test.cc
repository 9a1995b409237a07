// The rendezvous machine when nothing moves, and when one node fails again and again: scripts of
// two nodes, a (rank 0) and b (rank 1), with a lease of 10 s and a hang timeout of 30 s. Half a
// lease is added to that.
#include <gmock/gmock.h>

#include "tests/rendezvous/machine/machine_script.h"

using namespace ddprun;
using namespace ddprun::rendezvous;
using namespace ddprun::test;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

namespace {

Limits patient(int max_restarts = 3) {
    Limits with = limits(2, 2, max_restarts);
    with.hang_timeout = sec(30);
    return with;
}

// Both go on to be heard, without progress. What the second one's beat brings is given back.
Lines silent(Script& s, double from, double until) {
    Lines last;
    for (double now = from; now <= until; now += 2) {
        s.beat(now, 1);
        last = s.beat(now, 2);
    }
    return last;
}

WorkerOutcome seen(int rank, const std::string& line) {
    WorkerOutcome outcome;
    outcome.rank = outcome.local_rank = rank;
    outcome.pid = 4711;
    outcome.hung = true;
    outcome.stack = {line};
    outcome.tail = {"step 17"};
    return outcome;
}

// Both run, a has reported step 9 and b step 7 at 3; nothing since.
void stand_still(Script& s) {
    s.both_run();
    s.progresses(2, 1, {{0, 9}});
    s.progresses(3, 2, {{1, 7}});
}

}  // namespace

// Nobody has moved for 30 s and half a lease: the slowest are looked at first, and only then the
// generation ends, naming where they are. It uses the budget like any failure.
TEST(Hanging, EndsTheGenerationWhenTheSlowestHaveBeenLookedAt) {
    Script s(patient());
    stand_still(s);
    EXPECT_THAT(silent(s, 5, 37), Not(Contains(HasSubstr("Examine"))));
    EXPECT_THAT(s.tick(38), ElementsAre("1: Examine 0", "2: Examine 1"));
    EXPECT_THAT(s.come(38.2, 1, Report{Generation{0}, {seen(0, "poll")}}), IsEmpty());
    EXPECT_THAT(s.come(38.5, 2, Report{Generation{0}, {seen(1, "futex")}}),
                ElementsAre("note: no rank has made progress for 35.5 s (--hang-timeout 30.0 s); "
                            "the slowest is rank 1 (local 0 on b), at step 7; generation 0 ends",
                            "1: Ack over 0", "2: Ack over 0"));
    s.vows(39, 1, 0);
    EXPECT_THAT(s.vows(39, 2, 0),
                ElementsAre("2: Ack over 0", "note: restart 1 of 3",
                            "note: rank 1 (local 0 on b), at step 7:", "note:     futex",
                            "note: rank 0 (local 0 on a), at step 9:", "note:     poll",
                            HasSubstr("create 1: generation 1 {a b} after no rank has made")));
}

// The end names it too, with a code of its own.
TEST(Hanging, ItIsTheFirstFailureOfTheJob) {
    Script s(patient(0));
    stand_still(s);
    silent(s, 5, 37);
    s.tick(38);
    s.come(38.2, 1, Report{Generation{0}, {seen(0, "poll")}});
    s.come(38.5, 2, Report{Generation{0}, {seen(1, "futex")}});
    s.vows(39, 1, 0);
    s.vows(39, 2, 0);
    const Ending end = *s.creating().end();
    EXPECT_EQ(end.verdict, Verdict::worker_failed);
    EXPECT_EQ(end.code, kHungCode);
    ASSERT_TRUE(end.first_failure);
    EXPECT_TRUE(end.first_failure->hung);
    EXPECT_EQ(end.first_failure->rank, 1);
    EXPECT_EQ(end.first_failure->pid, 4711);
    EXPECT_EQ(end.first_failure_node, "b");
    EXPECT_THAT(end.first_failure->tail, ElementsAre("step 17"));
    EXPECT_THAT(end.first_failure->stack, Contains("    futex"));
}

// A node that does not answer is not waited for longer than 10 s.
TEST(Hanging, WhoDoesNotAnswerIsNotWaitedForLong) {
    Script s(patient());
    stand_still(s);
    silent(s, 5, 37);
    s.tick(38);
    s.come(38.5, 2, Report{Generation{0}, {seen(1, "futex")}});
    silent(s, 39, 47);
    EXPECT_THAT(s.tick(48), Contains(HasSubstr("generation 0 ends")));
    s.vows(49, 1, 0);
    EXPECT_THAT(s.vows(49, 2, 0),
                Contains("note: rank 0 (local 0 on a), at step 9: its node has not answered"));
}

// Any rank's report is progress, also one that comes while the slowest are looked at.
TEST(Hanging, ProgressOfAnyRankIsEnough) {
    Script s(patient());
    stand_still(s);
    silent(s, 5, 29);
    s.progresses(30, 1, {{0, 10}});
    silent(s, 31, 63);
    EXPECT_THAT(s.tick(65), ElementsAre("1: Examine 0", "2: Examine 1"));
    EXPECT_THAT(s.progresses(66, 2, {{1, 8}}, 0.5),
                Contains("note: a worker reports progress again; the generation continues"));
    EXPECT_THAT(s.come(66.1, 1, Report{Generation{0}, {seen(0, "poll")}}), IsEmpty());
    EXPECT_EQ(s.snapshot().over, kNoGeneration);
}

// The same report, heard again on a slow way, is none.
TEST(Hanging, TheSameReportHeardAgainIsNoProgress) {
    Script s(patient());
    stand_still(s);
    for (double now = 5; now <= 37; now += 2) {
        s.beat(now, 1);
        s.beat(now, 2);
    }
    EXPECT_THAT(s.tick(38), Contains("2: Examine 1")) << "35 s after 3";
}

// Without a report there is nothing to count from, however long it lives; without the option too.
TEST(Hanging, CountsFromTheFirstReportOn) {
    Script never(patient());
    never.both_run();
    EXPECT_THAT(silent(never, 2, 300), Not(Contains(HasSubstr("Examine"))));
    Script off(limits(2, 2, 3));
    stand_still(off);
    EXPECT_THAT(silent(off, 5, 300), Not(Contains(HasSubstr("Examine"))));
    EXPECT_EQ(off.snapshot().over, kNoGeneration);
}

// A leader that did not run itself (a paused host) takes nobody for hung.
TEST(Hanging, AfterItsOwnPauseALeaderCountsAnew) {
    Limits alone = limits(1, 1, 3);
    alone.hang_timeout = sec(30);
    Script s(alone);
    s.join(0, 1, node("a"));
    s.created(0.1);
    s.runs(1, 1, 0);
    s.progresses(2, 1, {{0, 9}});
    EXPECT_EQ(s.next(), at(37));
    EXPECT_THAT(s.tick(100), IsEmpty());
    EXPECT_EQ(s.next(), at(135));
    EXPECT_THAT(s.tick(135), ElementsAre("1: Examine 0"));
}

// ---- blame: MAX is two, and c (session 3) is a spare

namespace {

// The next generation, in which the worker on b is rank 1; says what its making brings.
Lines fails_on_b(Script& s, int g, double now) {
    s.runs(now, 1, g);
    s.runs(now, 2, g);
    s.fails(now + 0.1, 2, g, exited(1, 3));
    s.vows(now + 0.2, 3, g);
    s.vows(now + 0.2, 1, g);
    Lines all = s.vows(now + 0.3, 2, g);
    for (const std::string& line : s.created(now + 0.4)) all.push_back(line);
    return all;
}

Limits with_spare(bool blame) {
    Limits with = limits(2, 2, 9);
    with.crash_loop = 0;
    with.blame = blame;
    return with;
}

void three_are_there(Script& s) {
    s.both_are_there();
    s.created(0.6);
    s.join(0.7, 3, node("c"));
    s.beat(0.8, 3);
}

}  // namespace

TEST(Blaming, WhoFailsTwiceMakesRoomForASpare) {
    Script s(with_spare(true));
    three_are_there(s);
    EXPECT_THAT(fails_on_b(s, 0, 1), Contains(HasSubstr("generation 1 {a b} after rank 1")));
    EXPECT_THAT(
        fails_on_b(s, 1, 2),
        testing::AllOf(
            Contains(HasSubstr("generation 2 {a c} after rank 1")),
            Contains("note: b caused the end of generations 0 and 1; a spare replaces it "
                     "(--blame=off keeps it); for the next submission: sbatch --exclude=b")));
    EXPECT_THAT(s.creating().blame.nodes, ElementsAre("b")) << "the next leader knows it too";
}

TEST(Blaming, OffLeavesTheNode) {
    Script s(with_spare(false));
    three_are_there(s);
    fails_on_b(s, 0, 1);
    EXPECT_THAT(fails_on_b(s, 1, 2), Contains(HasSubstr("generation 2 {a b} after rank 1")));
    EXPECT_EQ(s.creating().blame, Blame{});
}

// The end says it once more, for whoever submits the job again.
TEST(Blaming, TheEndNamesWhomToExclude) {
    Limits with = limits(2, 2, 1);
    Script s(with);
    s.both_run();
    s.fails(2, 2, 0, exited(1, 3));
    s.vows(2.1, 1, 0);
    s.vows(2.2, 2, 0);
    s.created(2.3);
    s.runs(2.4, 1, 1);
    s.runs(2.4, 2, 1);
    s.fails(2.5, 2, 1, exited(1, 3));
    s.vows(2.6, 1, 1);
    s.vows(2.7, 2, 1);
    EXPECT_THAT(s.created(2.8), Contains("note: some nodes caused repeated failures; for the "
                                         "next submission: sbatch --exclude=b"));
}
