// The rendezvous machine when no rank makes progress (PROTOCOL.md, rule 22), and when one node
// fails again and again (rule 21). Scripts of two nodes, a (rank 0) and b (rank 1). The lease is
// 10 s and the hang timeout 30 s. Half a lease is added to it, because a node may stall for that
// long without effect.
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

// Both nodes go on to be heard, without new progress. A Beat each 2 s is enough to keep the lease.
// Returns what b's last Beat brings.
Lines silent(Script& s, double from, double until) {
    Lines last;
    for (double now = from; now <= until; now += 2) {
        s.beat(now, 1);
        last = s.beat(now, 2);
    }
    return last;
}

// A node's answer to Examine: the worker lives, and this is where it stands.
WorkerOutcome seen(int rank, const std::string& line) {
    WorkerOutcome outcome;
    outcome.rank = outcome.local_rank = rank;
    outcome.pid = 4711;
    outcome.hung = true;
    outcome.stack = {line};
    outcome.tail = {"step 17"};
    return outcome;
}

// Both run. a has reported step 9 at 2, and b step 7 at 3; nothing since. So the job hangs at 3 +
// 35 s.
void stand_still(Script& s) {
    s.both_run();
    s.progresses(2, 1, {{0, 9}});
    s.progresses(3, 2, {{1, 7}});
}

}  // namespace

// A rank has died silently or waits for ever, and all others wait in collectives. The slowest ranks
// are examined first, because only living workers can be. Then the generation ends with the place
// of the slowest. It uses up a restart like any failure.
TEST(Hanging, Rule22b_EndsTheGenerationWhenTheSlowestHaveBeenLookedAt) {
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
    // The stacks come with the restart, because the user will ask where it hung.
    EXPECT_THAT(s.vows(39, 2, 0),
                ElementsAre("2: Ack over 0", "note: restart 1 of 3",
                            "note: rank 1 (local 0 on b), at step 7:", "note:     futex",
                            "note: rank 0 (local 0 on a), at step 9:", "note:     poll",
                            HasSubstr("create 1: generation 1 {a b} after no rank has made")));
}

// Without a restart left, the job ends with code 124. The report names the slowest worker and has
// its stack, as it does for a worker that died.
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

// A worker that could not be read writes where it is when it is ended for the hang. Its node knows
// from the Ack that this is the reason, and what was written stands with the restart.
TEST(Hanging, Rule22l_TellsWhatAWorkerHasWrittenAtItsEnd) {
    Script s(patient());
    stand_still(s);
    silent(s, 5, 37);
    s.tick(38);
    s.come(38.2, 1, Report{Generation{0}, {seen(0, "poll")}});
    s.come(38.5, 2, Report{Generation{0}, {seen(1, "futex")}});
    WorkerOutcome wrote = seen(1, "in evaluate (eval.py:88)");
    wrote.signal = 6;
    EXPECT_THAT(s.come(38.6, 2, Report{Generation{0}, {wrote}}), IsEmpty());
    s.vows(39, 1, 0);
    const auto said = s.vows(39, 2, 0);
    EXPECT_THAT(said,
                Contains("note: rank 1 (local 0 on b), as it wrote itself when SIGABRT ended it:"));
    EXPECT_THAT(said, Contains("note:     in evaluate (eval.py:88)"));
}

// a's Beats go on, but it never answers the question. After 10 s the generation ends without a's
// stack, and the log says so.
TEST(Hanging, Rule22c_WhoDoesNotAnswerIsNotWaitedForLong) {
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

// A long evaluation may keep most ranks silent. The report of one rank is enough, also one that
// comes during the examination: then the job goes on, and an answer that comes later changes
// nothing.
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

// The nodes wait for processes that the workers have left running. No rank is left that could make
// progress.
TEST(Hanging, WorkersThatHaveAllEndedDoNotHang) {
    Script s(patient());
    stand_still(s);
    s.progresses(4, 1, {});
    EXPECT_THAT(silent(s, 5, 37), Not(Contains(HasSubstr("Examine"))));
    s.progresses(38, 2, {});
    EXPECT_THAT(silent(s, 40, 120), Not(Contains(HasSubstr("Examine"))));
    EXPECT_EQ(s.snapshot().over, kNoGeneration);
}

// Each Beat repeats the newest report. If a repetition counted, no job would ever hang.
TEST(Hanging, TheSameReportHeardAgainIsNoProgress) {
    Script s(patient());
    stand_still(s);
    for (double now = 5; now <= 37; now += 2) {
        s.beat(now, 1);
        s.beat(now, 2);
    }
    EXPECT_THAT(s.tick(38), Contains("2: Examine 1")) << "35 s after 3";
}

// A program that reports nothing must not be ended for that, however long it runs. Without the
// option nothing hangs either.
TEST(Hanging, Rule22d_CountsFromTheFirstReportOn) {
    Script never(patient());
    never.both_run();
    EXPECT_THAT(silent(never, 2, 300), Not(Contains(HasSubstr("Examine"))));
    Script off(limits(2, 2, 3));
    stand_still(off);
    EXPECT_THAT(silent(off, 5, 300), Not(Contains(HasSubstr("Examine"))));
    EXPECT_EQ(off.snapshot().over, kNoGeneration);
}

// The user has asked for a watch that a program without reports cannot have. One line says so and
// how to report, once in a job: 0 + 35 s, and not again in generation 1. A program that reports in
// time does not see it.
TEST(Hanging, WithoutAnyReportOneLineSaysThatNothingIsJudged) {
    const auto said = HasSubstr("ends the job only if all its workers stand still");
    Script never(patient());
    never.both_run();
    EXPECT_THAT(silent(never, 2, 34), Not(Contains(said)));
    EXPECT_THAT(never.tick(36.2), ElementsAre(said));
    EXPECT_THAT(never.tick(300), Not(Contains(said)));
    Script reports(patient());
    stand_still(reports);
    EXPECT_THAT(silent(reports, 5, 37), Not(Contains(said)));
    EXPECT_THAT(reports.tick(38), Not(Contains(said)));
}

// The leader's host was paused. When it goes on, the clock has moved and no Beat was handled. It
// must not take that for a hang, so it counts anew: 100 + 35.
TEST(Hanging, Rule22f_AfterItsOwnPauseALeaderCountsAnew) {
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

// The tests below are about blame. At most two nodes take part, so c (session 3) is a spare.

namespace {

// Generation g runs, the worker on b (rank 1) fails, and all three nodes vow. Returns the lines of
// the decision and of the next generation's start.
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

// Nine restarts and no crash loop, so that neither ends the job first.
Limits with_spare(bool blame) {
    Limits with = limits(2, 2, 9);
    with.crash_loop = 0;
    with.blame = blame;
    return with;
}

// c joins when a and b run already: it is a spare.
void three_are_there(Script& s) {
    s.both_are_there();
    s.created(0.6);
    s.join(0.7, 3, node("c"));
    s.beat(0.8, 3);
}

}  // namespace

// b's GPU fails again in each generation. After the second time the spare takes its place, and the
// log says how to keep b out of the next submission.
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

// The line about b is far up in the log by now. The next submission follows the end of the log, so
// the end names b once more.
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
