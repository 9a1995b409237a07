// The rendezvous machine as scripts: events in, effects out, one effect a line. "1: " before a line
// is the session.
#include "rendezvous/machine.h"

#include <gmock/gmock.h>

#include "tests/rendezvous/machine_script.h"

using namespace ddprun;
using namespace ddprun::rendezvous;
using namespace ddprun::test;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Two nodes come; the generation closes when both have echoed an Ack, and starts when the entry is
// ours.
TEST(Machine, FirstGenerationClosesWhenBothAreThereAndConfirmed) {
    Script s(limits(2, 2));
    EXPECT_THAT(s.join(0, 1, node("a")), ElementsAre("1: Welcome", "1: Ack"));
    EXPECT_THAT(s.join(0, 2, node("b")), ElementsAre("2: Welcome", "2: Ack"));
    EXPECT_THAT(s.beat(0.5, 1), ElementsAre("1: Ack"));
    EXPECT_THAT(s.beat(0.5, 2), ElementsAre("2: Ack", "create 0: generation 0 {a b} after start"));
    EXPECT_THAT(s.beat(0.55, 1), ElementsAre("1: Ack"))
        << "nothing starts before the ledger has it";
    EXPECT_THAT(s.created(0.6), ElementsAre("note: generation 0: 2 nodes, 2 workers",
                                            "1: Assigned 0, node 0 of 2, 7.5 s left",
                                            "2: Assigned 0, node 1 of 2, 7.5 s left"));
    EXPECT_EQ(s.snapshot().phase, Phase::running);
    EXPECT_EQ(s.snapshot().held_until, at(8));
}

// With MIN < MAX one node waits 30 s for another, and says so after 5.
TEST(Machine, FirstGenerationWaitsForTheLastCall) {
    Script s(limits(1, 2));
    s.join(0, 1, node("a"));
    s.beat(0.5, 1);
    EXPECT_EQ(s.next(), at(5));
    for (double now = 1; now < 5; now += 0.5) EXPECT_THAT(s.beat(now, 1), ElementsAre("1: Ack"));
    EXPECT_THAT(s.beat(5, 1),
                ElementsAre("1: Ack", "note: still waiting: 1 of 2 nodes joined (min 1)"));
    for (double now = 5.5; now < 30.5; now += 0.5)
        EXPECT_THAT(s.beat(now, 1), ElementsAre("1: Ack"));
    EXPECT_EQ(s.next(), at(30.5));
    EXPECT_THAT(s.tick(30.5), ElementsAre("create 0: generation 0 {a} after start"));
}

// One worker fails: all hear it in the same step, and the next generation begins when all have
// vowed.
TEST(Machine, FailureEndsTheGenerationForAllInTheSameStep) {
    Script s(limits(2, 2, 3));
    s.both_run();
    EXPECT_THAT(s.fails(2, 2, 0, exited(1, 3)),
                ElementsAre("note: rank 1 exited with 3; generation 0 ends", "1: Ack over 0",
                            "2: Ack over 0"));
    EXPECT_THAT(s.beat(2.1, 1), ElementsAre(HasSubstr("told to stop its workers"), "1: Ack over 0"))
        << "still stopping";
    EXPECT_THAT(s.vows(2.2, 1, 0), ElementsAre("1: Ack over 0")) << "b has not vowed";
    EXPECT_THAT(s.vows(2.3, 2, 0),
                ElementsAre("2: Ack over 0", "note: restart 1 of 3",
                            "create 1: generation 1 {a b} after rank 1 exited with 3"));
    EXPECT_EQ(s.snapshot().restarts, 1);
}

// b never vows: a may go on alone only when H (8.5) has passed 0.2 lease ago.
TEST(Machine, WithoutAFloorTheNextWaitsForTheLease) {
    Script s(limits(1, 2, 3));
    s.both_are_there();
    s.created(0.6);
    s.runs(1, 1, 0);
    s.runs(1, 2, 0);
    EXPECT_EQ(s.snapshot().held_until, at(8.5));
    s.fails(2, 1, 0, exited(0, 3));
    s.vows(2.1, 1, 0);
    for (double now = 2.5; now < 8; now += 0.5)
        EXPECT_THAT(s.beat(now, 1), ElementsAre("1: Ack over 0"));
    EXPECT_THAT(s.beat(8, 1), ElementsAre("1: Ack over 0", "2: closed")) << "silent for 7 s";
    for (double now = 8.5; now < 10.5; now += 0.5)
        EXPECT_THAT(s.beat(now, 1), ElementsAre("1: Ack over 0"));
    EXPECT_EQ(s.next(), at(10.5) + Duration{1});
    EXPECT_THAT(s.tick(10.5), IsEmpty());
    EXPECT_THAT(s.tick(10.500001),
                ElementsAre("note: restart 1 of 3",
                            "create 1: generation 1 {a} after rank 0 exited with 3"));
}

// b is silent while 5.5 of 8 s pass: its confirmation is told to all at once, so that nobody's
// deadline passes.
TEST(Machine, LateConfirmationIsPushed) {
    Script s(limits(2, 2));
    s.both_run();
    s.beat(3, 1);
    s.beat(5, 1);
    EXPECT_THAT(s.beat(5.5, 2),
                ElementsAre("1: Ack holds 0, 4.0 s left", "2: Ack holds 0, 3.5 s left",
                            "2: Ack holds 0, 3.5 s left"));
}

// Nobody hears b any more: the lease ends the generation by itself, with the numbers.
TEST(Machine, PassedLeaseEndsTheGeneration) {
    Script s(limits(2, 2));
    s.both_run();
    s.beat(8, 1);
    EXPECT_EQ(s.next(), at(8.5) + Duration{1});
    EXPECT_THAT(s.tick(8.5), IsEmpty());
    EXPECT_THAT(
        s.tick(8.500001),
        ElementsAre(
            "note: node b has confirmed nothing for 8.0 s (lease 10.0 s); generation 0 ends",
            "1: Ack over 0", "2: Ack over 0", "2: closed"));
}

// Entry 1 says what of the restart is past when it is written, the end the rest; the sum is the
// time between the failure and the first progress, and is said when the job has ended.
TEST(Machine, EntriesSayWhatARestartCost) {
    using enum RestartPhase;
    Script s(limits(2, 2, 3));
    s.both_run();
    WorkerOutcome failure = exited(1, 3);
    failure.age = sec(0.1);
    s.fails(2, 2, 0, failure);
    s.vows(2.2, 1, 0);
    s.marks(2.2, 1, 0, {{told, 2}, {stopped, 2.1}, {gone, 2.2}});
    s.marks(2.4, 2, 0, {{told, 1.9}, {stopped, 2.3}, {gone, 2.4}});
    s.vows(2.5, 2, 0);
    const auto took = [&](RestartPhase phase) {
        return s.creating().restart.times[static_cast<std::size_t>(phase)].took;
    };
    EXPECT_EQ(took(detected), sec(0.1));
    EXPECT_EQ(took(told), sec(0));
    EXPECT_EQ(took(stopped), sec(0.3));
    EXPECT_EQ(took(gone), sec(0.1));
    EXPECT_EQ(took(met), sec(0.1));
    s.created(2.6);
    s.runs(2.7, 1, 1);
    s.marks(2.9, 1, 1, {{started, 2.8}});
    s.runs(3, 2, 1);
    s.marks(3.6, 2, 1, {{started, 3}, {contact, 3.2}, {progress, 3.5}});
    s.completes(8, 1, 1);
    s.completes(8, 2, 1);
    s.vows(8.1, 1, 1);
    s.vows(8.1, 2, 1);
    EXPECT_EQ(took(started), sec(0.5));
    EXPECT_EQ(took(contact), sec(0.2));
    EXPECT_EQ(took(progress), sec(0.3));
    Duration lost{};
    for (const Duration each : s.creating().restart.totals.took) lost += each;
    EXPECT_EQ(lost, sec(3.5 - 1.9));
    EXPECT_THAT(s.created(8.2),
                AllOf(Contains(HasSubstr("note: 1 restart, 1.6 s lost: 0.1 s detected")),
                      Contains("note: longest: generation 1, 0.5 s in started (b)")));
}

// No budget: the end is recorded only after the floors, then everyone is told the first worker's
// code.
TEST(Machine, UsedUpBudgetEndsTheJobForAll) {
    Script s(limits(2, 2, 0));
    s.both_run();
    s.fails(2, 2, 0, exited(1, 3));
    s.vows(2.2, 1, 0);
    EXPECT_THAT(s.vows(2.3, 2, 0),
                ElementsAre("2: Ack over 0", "create 1: end 3, no restart: --max-restarts is 0"));
    EXPECT_EQ(s.creating().ending.first_failure_node, "b");
    EXPECT_THAT(s.created(2.4), ElementsAre(HasSubstr("the job has ended"), "1: Finished 3",
                                            "2: Finished 3", "closed with 3"));
    EXPECT_THAT(s.tick(2.5), IsEmpty());
}

// Both report at once: the earlier one in time is the first failure, though it was heard of later.
TEST(Machine, FirstFailureIsTheEarliestInTime) {
    Script s(limits(2, 2, 0));
    s.both_run();
    s.fails(2, 2, 0, killed(1, 6));
    WorkerOutcome earlier = exited(0, 3);
    earlier.age = sec(0.5);
    EXPECT_THAT(s.fails(2.1, 1, 0, earlier), IsEmpty());
    s.vows(2.2, 1, 0);
    s.vows(2.3, 2, 0);
    EXPECT_EQ(s.creating().ending.code, 3);
    EXPECT_EQ(s.creating().ending.consequences, 1);
}

// A worker of b hangs in the kernel: b is as good as gone, stays connected, and hears the end. What
// was wrong with it stands in the report.
TEST(Machine, UnusableNodeIsNeverWaitedForAndHearsTheEnd) {
    Script s(limits(2, 2, 0));
    s.both_run();
    s.fails(2, 1, 0, exited(0, 3));
    s.vows(2.2, 1, 0);
    const Lines end = s.come(62, 2, Unusable{"rank 1 cannot be killed"});
    EXPECT_THAT(end, ElementsAre("note: node b is unusable: rank 1 cannot be killed",
                                 "create 1: end 3, no restart: --max-restarts is 0"));
    ASSERT_TRUE(s.creating().ending.loss);
    EXPECT_EQ(s.creating().ending.loss->node, "b");
    EXPECT_THAT(s.created(62.1), Contains("2: Finished 3"));
}

// … and where a restart is left, a spare takes its place.
TEST(Machine, SpareTakesThePlaceOfAnUnusableNode) {
    Script s(limits(2, 2, 3));
    s.both_run();
    s.join(1.5, 3, node("c"));
    s.fails(2, 1, 0, exited(0, 3));
    s.vows(2.2, 1, 0);
    s.vows(2.2, 3, 0);
    EXPECT_THAT(s.come(2.3, 2, Unusable{"stuck"}), Contains(HasSubstr("generation 1 {a c}")));
}

// Nobody else can come to a job of one node.
TEST(Machine, UnusableNodeThatIsAloneEndsTheJob) {
    Script s(limits(1, 1));
    s.join(0, 1, node("a"));
    s.created(0.1);
    s.runs(0.2, 1, 0);
    EXPECT_THAT(s.come(5, 1, Unusable{"stuck"}),
                Contains("create 1: end 69, node a is unusable: stuck"));
}

Limits of_step(int min_nodes) {
    Limits limits = ddprun::test::limits(min_nodes, 3);
    limits.order = {"a", "b", "c"};
    return limits;
}
// Says that it can run no worker, and then joins to hear the end.
void comes_unusable(Script& s, double now, int session, const char* name) {
    s.hello(now, session, node(name));
    s.come(now, session, Unusable{"no GPU"});
}

// A step has no other nodes: the job ends as soon as all have come to hear why, with the code of a
// wrong command line, and no worker has run.
TEST(Machine, NodeOfAStepThatCanRunNothingEndsTheJobAtOnce) {
    Script s(of_step(3));
    s.join(0, 1, node("a"));
    comes_unusable(s, 0.1, 2, "b");
    EXPECT_THAT(s.join(0.1, 2, node("b")), Not(Contains(HasSubstr("create"))));
    EXPECT_THAT(s.join(0.2, 3, node("c")), Contains("create 0: end 2, node b is unusable: no GPU"));
    const Lines end = s.created(0.3);
    for (const char* told : {"1: Finished 2", "3: Finished 2"}) EXPECT_THAT(end, Contains(told));
}

// Who has not come after a lease may never come.
TEST(Machine, EndForWantOfUsableNodesIsNotPutOffForEver) {
    Script s(of_step(2));
    comes_unusable(s, 1, 1, "a");
    comes_unusable(s, 2, 2, "b");
    EXPECT_THAT(s.tick(10.9), Not(Contains(HasSubstr("create"))));
    EXPECT_THAT(s.tick(11), Contains("create 0: end 2, node a is unusable: no GPU; and 1 more"));
}

// Where the others are enough they begin without it.
TEST(Machine, NodeThatCanRunNothingMayBeMissing) {
    Script s(of_step(2));
    comes_unusable(s, 0, 3, "c");
    s.join(0, 1, node("a"));
    s.join(0, 2, node("b"));
    for (double now = 1; now < 31; now += 2)  // the last call
        for (const int session : {1, 2})
            EXPECT_THAT(s.beat(now, session), Not(Contains(HasSubstr("create")))) << now;
    EXPECT_THAT(s.tick(31.1), Contains(HasSubstr("create 0: generation 0 {a b}")));
}

// What ended the last generation is told as the cause when nobody comes in place of a lost node,
// and its moment is of this leader's clock.
TEST(Machine, LostNodeIsTheCauseOfAnEndForWantOfNodes) {
    MachineConfig config = Script::config(limits(2, 2));
    config.to_day = sec(1'800'000'000);
    Script s(config);
    s.both_run();
    s.come(3, 2, Gone{node("b")});
    s.vows(3.1, 1, 0);
    for (double now = 3.5; now < 700 && s.creating().kind != LedgerEntry::Kind::end; now += 0.5)
        s.beat(now, 1);
    ASSERT_EQ(s.creating().kind, LedgerEntry::Kind::end);
    EXPECT_EQ(s.creating().ending.code, 69);
    ASSERT_TRUE(s.creating().ending.loss);
    EXPECT_EQ(s.creating().ending.loss->node, "b");
    EXPECT_EQ(s.creating().ending.loss->sentence, "node b is gone: its ddprun has ended");
    EXPECT_EQ(s.creating().ending.at, sec(1'800'000'003));
    EXPECT_EQ(s.creating().ending.generation, Generation{0});
}

// The same worker dies in the same way in each generation, before any progress.
TEST(Machine, CrashLoopEndsTheJob) {
    Script s(limits(2, 2, 9));
    s.both_run();
    for (int g = 0;; ++g) {
        const double now = 2 + g;
        s.fails(now, 2, g, exited(1, 3));
        s.vows(now + 0.1, 1, g);
        const Lines last = s.vows(now + 0.2, 2, g);
        if (g == 2) {
            EXPECT_THAT(
                last,
                ElementsAre("2: Ack over 2",
                            HasSubstr("create 3: end 3, crash loop: 3 generations in a row")));
            break;
        }
        EXPECT_THAT(last.back(), HasSubstr("create " + std::to_string(g + 1) + ": generation"));
        s.created(now + 0.3);
        s.runs(now + 0.4, 1, g + 1);
        s.runs(now + 0.4, 2, g + 1);
    }
}

TEST(Machine, SuccessIsRecordedWhenAllHaveCompleted) {
    Script s(limits(2, 2));
    s.both_run();
    EXPECT_THAT(s.completes(2, 1, 0), IsEmpty());
    EXPECT_THAT(s.completes(2, 1, 0), IsEmpty()) << "said twice";
    EXPECT_THAT(s.completes(3, 2, 0), ElementsAre("note: all workers succeeded; generation 0 ends",
                                                  "1: Ack over 0", "2: Ack over 0"));
    s.vows(3.1, 1, 0);
    EXPECT_THAT(
        s.vows(3.1, 2, 0),
        ElementsAre("2: Ack over 0", "create 1: end 0, all 2 workers of generation 0 succeeded"));
    EXPECT_THAT(s.created(3.2),
                ElementsAre(HasSubstr("ended"), "1: Finished 0", "2: Finished 0", "closed with 0"));
}

// A signal on one node: all are told to stop, the lease goes on until they have, and only then is
// the end written.
TEST(Machine, PlannedStopKeepsTheLease) {
    Script s(limits(2, 2));
    s.both_run();
    EXPECT_THAT(s.come(2, 1, StopAsked{15, "signal 15"}),
                ElementsAre("note: stopped: signal 15 on node a", "1: Stop by signal 15",
                            "2: Stop by signal 15"));
    EXPECT_THAT(s.come(2, 2, StopAsked{2, "signal 2"}), IsEmpty()) << "the first one counts";
    s.beat(3, 1);
    EXPECT_THAT(s.beat(3, 2), ElementsAre("2: Ack holds 0, 6.0 s left"));
    EXPECT_THAT(s.fails(3.5, 1, 0, killed(0, 15)), IsEmpty())
        << "who dies of the stop has not failed";
    s.completes(4, 1, 0);
    EXPECT_THAT(s.completes(4, 2, 0),
                ElementsAre("note: all workers have stopped; generation 0 ends", "1: Ack over 0",
                            "2: Ack over 0"));
    s.vows(4.1, 1, 0);
    EXPECT_THAT(s.vows(4.1, 2, 0),
                ElementsAre("2: Ack over 0", "create 1: end 143, stopped: signal 15 on node a"));
}

// A connection that ends proves nothing; the keeper's word, on the node's own session, does.
TEST(Machine, GoneIsProofAndALostConnectionIsNot) {
    Script s(limits(2, 2));
    s.both_run();
    EXPECT_THAT(s.step(2, ConnectionLost{Session{2}}), IsEmpty());
    EXPECT_THAT(s.come(2, 1, Gone{node("b")}), IsEmpty()) << "a cannot say it of b";
    EXPECT_EQ(s.snapshot().phase, Phase::running);
    EXPECT_THAT(s.hello(2.1, 3, node("b")), ElementsAre("3: Welcome"));
    EXPECT_THAT(s.come(2.1, 3, Gone{node("b")}),
                ElementsAre("note: node b is gone: its ddprun has ended; generation 0 ends",
                            "1: Ack over 0"));
    EXPECT_THAT(s.hello(2.2, 4, node("b")),
                ElementsAre(HasSubstr("known to be gone"), HasSubstr("4: Refused"), "4: closed"));
}

// b's process is replaced: its floor is not waited for, the new one takes its place, and the budget
// is not touched.
TEST(Machine, ReplacementTakesThePlaceOfWhoIsGone) {
    Script s(limits(2, 2, 0));
    s.both_run();
    s.come(2, 2, Gone{node("b")});
    s.vows(2.1, 1, 0);
    s.join(2.2, 3, node("b", 2));
    EXPECT_THAT(
        s.vows(2.3, 3, 0),
        ElementsAre("3: Ack over 0",
                    "create 1: generation 1 {a b} after node b is gone: its ddprun has ended"));
    EXPECT_EQ(s.creating().assignment.restarts, 0);
    EXPECT_EQ(s.creating().assignment.members[1].node, node("b", 2));
}

// A member comes back without its workers: it is sent the same assignment again, or ends it by its
// vow.
TEST(Machine, MemberThatComesAnewIsAssignedAgain) {
    Script s(limits(2, 2));
    s.both_are_there();
    s.created(0.6);
    s.step(0.7, ConnectionLost{Session{2}});
    EXPECT_THAT(s.join(1, 3, node("b")),
                ElementsAre("3: Welcome", "3: Assigned 0, node 1 of 2, 7.0 s left",
                            "3: Ack holds 0, 7.0 s left"));
    EXPECT_THAT(s.vows(1.1, 3, 0),
                ElementsAre("note: node b does not run generation 0; generation 0 ends",
                            "1: Ack over 0", "3: Ack over 0", "3: Ack over 0"));
}

TEST(Machine, ThirdNodeOfTwoIsASpare) {
    Script s(limits(2, 2));
    s.both_are_there();
    s.join(0.5, 3, node("c"));
    EXPECT_THAT(s.created(0.6), ElementsAre(HasSubstr("generation 0"), HasSubstr("1: Assigned"),
                                            HasSubstr("2: Assigned"), "3: Parked"));
}

// b goes while the entry is written: the generation exists, but nobody is ever told to run it.
TEST(Machine, WhoLeavesWhileItIsRecordedEndsItUnannounced) {
    Script s(limits(2, 2));
    s.both_are_there();
    EXPECT_THAT(s.come(0.55, 2, Leave{"stopped by signal 15"}),
                ElementsAre("note: node b left: stopped by signal 15"));
    EXPECT_THAT(
        s.created(0.6),
        ElementsAre("note: node b left while the generation was recorded; generation 0 ends",
                    "1: Ack over 0", "2: Ack over 0"));
}

TEST(Machine, WrongRunIsRefused) {
    Script s(limits(1, 2));
    const std::string why =
        "node x is of run \"other\", this is run \"job\" (--rdzv-id, --rdzv-endpoint)";
    EXPECT_THAT(s.hello(0, 1, node("x"), "other"),
                ElementsAre("note: refused a node: " + why, "1: Refused: " + why, "1: closed"));
    EXPECT_THAT(s.come(0, 1, Beat{}), IsEmpty()) << "a stranger's words count for nothing";
}

// Another leader was first: its entry is the newest; a and b, who are here, do not run what it
// says, so that it is over, and the next number follows it.
TEST(Machine, EntryLostToAnotherWriterIsAdopted) {
    Script s(limits(2, 2));
    s.both_are_there();
    LedgerEntry theirs = s.creating();
    theirs.leader = node("rival");
    EXPECT_THAT(s.step(0.6, LedgerCreated{LedgerCreated::Outcome::lost, theirs, {}}),
                ElementsAre("note: ledger entry 0 was written by rival; it is adopted", "1: Ack",
                            "2: Ack", "note: node a does not run generation 0; generation 0 ends",
                            "1: Ack over 0", "2: Ack over 0"));
    s.vows(0.7, 1, 0);
    EXPECT_THAT(s.vows(0.7, 2, 0), ElementsAre("2: Ack over 0",
                                               "create 1: generation 1 {a b} after node a does not "
                                               "run generation 0"));
}

// The ledger fails: tried again each 0.1 lease, given up after the join timeout, and everyone is
// told.
TEST(Machine, FailingLedgerIsTriedAgainThenGivenUp) {
    Limits two = limits(2, 2);
    two.times.join_timeout = sec(3);
    Script s(two);
    s.both_are_there();
    const auto failed = LedgerCreated::Outcome::failed;
    EXPECT_THAT(s.created(0.6, failed), ElementsAre("note: ledger: disk full; trying again"));
    EXPECT_EQ(s.next(), at(1.6));
    EXPECT_THAT(s.tick(1.5), IsEmpty());
    EXPECT_THAT(s.tick(1.6), ElementsAre("create 0: generation 0 {a b} after start"));
    EXPECT_THAT(
        s.created(3.7, failed),
        ElementsAre("note: the job has ended: ledger: disk full, for 3.1 s (--join-timeout)",
                    "1: Finished 69", "2: Finished 69", "closed with 69"));
}

// The ledger already holds the end: whoever comes is told, and nothing is written.
TEST(Machine, ClosedLedgerTellsTheEnd) {
    Machine machine(Script::config(limits(2, 2)), at(0));
    LedgerEntry end;
    end.number = EntryNumber{4};
    end.kind = LedgerEntry::Kind::end;
    end.ending = ending(Verdict::worker_failed, 3, "no restart");
    machine.step(at(0), Lead{{node("leader"), "leader", 1}});
    const Effects effects = machine.step(at(0), LedgerRead{{end}});
    EXPECT_EQ(describe(effects.back()), "closed with 3");
    EXPECT_EQ(machine.snapshot().phase, Phase::closed);
}

// A rendezvous outside the job is not its one node: that node has a lease too, and its silence ends
// the generation, so that a spare may follow.
TEST(Machine, HoldsALeaseForAJobOfOneNodeWhenItIsOutside) {
    MachineConfig config = Script::config(limits(1, 1));
    config.outside = true;
    Script s(config);
    s.join(0, 1, node("a"));
    s.beat(0.5, 1);
    EXPECT_THAT(s.created(0.6), Contains(HasSubstr("1: Assigned 0, node 0 of 1, ")));
    s.runs(1, 1, 0);
    s.join(2, 2, node("spare"));
    EXPECT_THAT(s.tick(9.1), Contains(HasSubstr("generation 0 ends")));
    s.vows(9.2, 2, 0);
    EXPECT_THAT(s.vows(11.1, 2, 0), Contains(HasSubstr("create 1: generation 1 {spare}")));
}

// A leader that knows less of its ledger than a node looks again. What lay in memory has gone with
// the process that held it; the node would wait for an entry that never comes.
TEST(Machine, LooksAgainWhenANodeKnowsMoreOfTheLedger) {
    MachineConfig config = Script::config(limits(2, 2));
    config.succession = true;
    Script s(config);
    s.join(0, 1, node("a"));
    EXPECT_THAT(s.has_seen(0.5, 1, 0), Contains("read the ledger"));
}

TEST(Machine, RefusesANodeOfALedgerThatIsLost) {
    Script s(limits(2, 2));
    s.join(0, 1, node("a"));
    s.join(0, 2, node("b"));
    EXPECT_THAT(s.has_seen(0.5, 1, 0),
                ElementsAre(HasSubstr("note: refused a node: node a has heard of entry 0"),
                            HasSubstr("1: Refused"), "1: closed"));
    EXPECT_THAT(s.beat(0.6, 2), ElementsAre(HasSubstr("2: Ack"))) << "it does not count as here";
    EXPECT_THAT(s.beat(0.7, 2), ElementsAre(HasSubstr("2: Ack")));
}

// Who is told of one node sends no beats: a rendezvous outside the job tells nobody so.
TEST(Machine, AsksForBeatsWhenItIsOutside) {
    MachineConfig config = Script::config(limits(1, 1));
    for (const bool outside : {false, true}) {
        config.outside = outside;
        Machine machine(config, at(0));
        machine.step(at(0), Lead{{node("leader"), "leader", 1}});
        machine.step(at(0), LedgerRead{});
        const Effects effects =
            machine.step(at(0), Came{Session{1}, Hello{"job", node("a"), "1", 0}});
        const auto* sent = std::get_if<Send>(&effects.at(0));
        ASSERT_NE(sent, nullptr);
        EXPECT_EQ(std::get<Welcome>(sent->message).max_nodes > 1, outside);
    }
}

// c comes while a and b of at most 3 run: at the next snapshot all are stopped as planned, the
// lease goes on until they have, and the next generation has three nodes and costs no restart.
TEST(Machine, LateNodeIsTakenInAtTheNextSnapshot) {
    Limits three = limits(2, 3, 0);
    three.times.last_call = sec(0);
    Script s(three);
    s.both_run();
    EXPECT_THAT(s.join(2, 3, node("c")), ElementsAre("3: Welcome", "3: Parked", "3: Ack holds 0"));
    EXPECT_THAT(s.beat(2.1, 3), ElementsAre("3: Ack holds 0"));
    EXPECT_THAT(s.snapshots(2.2, 1, 40),
                ElementsAre(HasSubstr("1: Ack"), "note: c joined: 2 of 3 nodes ran, 3 will",
                            "1: Stop by signal 15", "2: Stop by signal 15"));
    EXPECT_THAT(s.fails(2.3, 2, 0, killed(1, 15)), IsEmpty()) << "who dies of the stop";
    s.completes(2.4, 1, 0);
    EXPECT_THAT(s.completes(2.5, 2, 0).front(),
                "note: c joined: 2 of 3 nodes ran, 3 will; generation 0 ends");
    s.vows(2.6, 1, 0);
    EXPECT_THAT(s.vows(2.6, 2, 0), ElementsAre("2: Ack over 0")) << "c has not vowed yet";
    EXPECT_EQ(s.vows(2.6, 3, 0).back(),
              "create 1: generation 1 {a b c} after c joined: 2 of 3 nodes ran, 3 will");
    EXPECT_EQ(s.creating().assignment.restarts, 0);
}

// With --on-join=spare the world never grows, but a spare fills a hole at once.
TEST(Machine, SpareFillsAHoleAtOnceAndMakesTheWorldNoLarger) {
    Limits four = limits(2, 4, 3);
    four.on_join = OnJoin::spare;
    four.times.last_call = sec(0);
    Script s(four);
    s.both_run();
    s.join(2, 3, node("c"));
    s.beat(2.1, 3);
    s.fails(2.2, 2, 0, exited(1, 3));
    s.vows(2.3, 3, 0);
    s.vows(2.3, 1, 0);
    EXPECT_THAT(s.vows(2.3, 2, 0).back(), HasSubstr("generation 1 {a b}"));
    s.created(2.4);
    s.runs(2.5, 1, 1);
    s.runs(2.5, 2, 1);
    s.come(2.6, 2, Gone{node("b")});
    s.vows(2.7, 3, 1);
    EXPECT_THAT(s.vows(2.7, 1, 1).back(), HasSubstr("generation 2 {a c}"));
}

// --task-per-worker: a reader counts hosts.
TEST(Machine, TasksOfAHostAreOneNodeInTheLog) {
    Script s(limits(2, 2));
    s.join(0, 1, node("a/0"));
    s.join(0, 2, node("a/1"));
    s.beat(0.5, 1);
    s.beat(0.5, 2);
    EXPECT_THAT(s.created(0.6), Contains("note: generation 0: 1 node, 2 workers"));
}
