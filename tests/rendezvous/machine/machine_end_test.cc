// The rendezvous machine as scripts (machine_test.cc): what failures and stops cost, and how the
// job ends (PROTOCOL.md, rules 14, 17, 23 and 24). The lease is 10 s.
#include "rendezvous/machine/machine.h"

#include "tests/rendezvous/machine/machine_script.h"

using namespace ddprun;
using namespace ddprun::rendezvous;

// Entry 1 is written when half of the restart is over, so it holds the first phases. The end holds
// the rest. The sum is the time from the failure (1.9) to the first progress (3.5), and the last
// lines of the log name it.
TEST(Machine, EntriesSayWhatARestartCost) {
    using enum RestartPhase;
    Script s(limits(2, 2, 3));
    s.both_run();
    WorkerOutcome failure = exited(1, 3);
    // It failed at 1.9, and the leader heard it at 2.
    failure.age = sec(0.1);
    s.fails(2, 2, 0, failure);
    s.vows(2.2, 1, 0);
    // Each phase ends with its last node: stopped at 2.3, gone at 2.4.
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
    // The last worker starts at 3, the first one calls the store at 3.2 and reports progress at
    // 3.5.
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
                AllOf(Contains(HasSubstr(
                          "note: 1 restart, 1.6 s lost, the longest part in starting the program")),
                      Contains("note: longest: generation 1, 0.5 s in started (b)")));
}

// No restart is left. The end is written only when all nodes have vowed, so nobody reads "ended"
// while workers still run. Then all nodes exit with the first worker's code.
TEST(Machine, UsedUpBudgetEndsTheJobForAll) {
    Script s(limits(2, 2, 0));
    s.both_run();
    s.fails(2, 2, 0, exited(1, 3));
    s.vows(2.2, 1, 0);
    EXPECT_THAT(s.vows(2.3, 2, 0),
                ElementsAre("2: Ack over 0", "create 1: end 3, no restart: --max-restarts is 0"));
    EXPECT_EQ(s.creating().end()->first_failure_node, "b");
    EXPECT_THAT(s.created(2.4), ElementsAre(HasSubstr("the job has ended"), "1: Finished 3",
                                            "2: Finished 3", "closed with 3"));
    EXPECT_THAT(s.tick(2.5), IsEmpty());
}

// The leader's node cannot open the ledger. It tells the nodes that are there, and waits one lease
// (10 s) for the others: without it each would wait for the join timeout.
TEST(Machine, ANodeThatCannotLeadTellsTheOthersWhy) {
    MachineConfig config = Script::config(limits(2, 2));
    config.refusal = "node n1 cannot open the ledger: /sys is read-only";
    Script all(config);
    all.join(0.1, 1, node("a"));
    EXPECT_THAT(all.join(0.2, 2, node("b")),
                Contains("create 0: end 69, node n1 cannot open the ledger: /sys is read-only"));
    EXPECT_THAT(all.created(0.3), AllOf(Contains("1: Finished 69"), Contains("2: Finished 69")));

    Script one(config);
    one.join(0.1, 1, node("a"));
    for (double now = 0.5; now < 10; now += 0.5)
        EXPECT_THAT(one.beat(now, 1), Not(Contains("create"))) << now;
    EXPECT_THAT(one.beat(10, 1), Contains(HasSubstr("create 0: end 69")));
}

// b's report comes first, but a's worker died half a second earlier: 2.1 − 0.5. The job ends with
// the code of that one.
TEST(Machine, FirstFailureIsTheEarliestInTime) {
    Script s(limits(2, 2, 0));
    s.both_run();
    s.fails(2, 2, 0, killed(1, 6));
    WorkerOutcome earlier = exited(0, 3);
    earlier.age = sec(0.5);
    EXPECT_THAT(s.fails(2.1, 1, 0, earlier), IsEmpty());
    s.vows(2.2, 1, 0);
    s.vows(2.3, 2, 0);
    EXPECT_EQ(s.creating().end()->code, 3);
    EXPECT_EQ(s.creating().end()->consequences, 1);
}

// A worker of b hangs in the kernel, so SIGKILL has no effect on it. After 60 s b gives up and says
// that it is unusable. Then b counts as gone, but it stays connected and hears the end. The report
// says what was wrong with it.
TEST(Machine, UnusableNodeIsNeverWaitedForAndHearsTheEnd) {
    Script s(limits(2, 2, 0));
    s.both_run();
    s.fails(2, 1, 0, exited(0, 3));
    s.vows(2.2, 1, 0);
    const Lines end = s.come(62, 2, Unusable{"rank 1 cannot be killed"});
    EXPECT_THAT(end, ElementsAre("note: node b is unusable: rank 1 cannot be killed",
                                 "create 1: end 3, no restart: --max-restarts is 0"));
    ASSERT_TRUE(s.creating().end()->loss);
    EXPECT_EQ(s.creating().end()->loss->node, "b");
    EXPECT_THAT(s.created(62.1), Contains("2: Finished 3"));
}

// The same, with a restart and a spare left.
TEST(Machine, SpareTakesThePlaceOfAnUnusableNode) {
    Script s(limits(2, 2, 3));
    s.both_run();
    s.join(1.5, 3, node("c"));
    s.fails(2, 1, 0, exited(0, 3));
    s.vows(2.2, 1, 0);
    s.vows(2.2, 3, 0);
    EXPECT_THAT(s.come(2.3, 2, Unusable{"stuck"}), Contains(HasSubstr("generation 1 {a c}")));
}

// No other node can come to a job of one node, so it would wait for nothing.
TEST(Machine, UnusableNodeThatIsAloneEndsTheJob) {
    Script s(limits(1, 1));
    s.join(0, 1, node("a"));
    s.created(0.1);
    s.runs(0.2, 1, 0);
    EXPECT_THAT(s.come(5, 1, Unusable{"stuck"}),
                Contains("create 1: end 69, node a is unusable: stuck"));
}

// A worker has failed, and what is left of it may not be killed: there is no restart, whatever
// --max-restarts says, and nobody waits for another node.
TEST(Machine, UnusableNodeThatIsAloneIsNotRestarted) {
    Script s(limits(1, 1, 3));
    s.join(0, 1, node("a"));
    s.created(0.1);
    s.runs(0.2, 1, 0);
    s.fails(5, 1, 0, exited(0, 3));
    EXPECT_THAT(s.come(6, 1, Unusable{"stuck"}),
                Contains("create 1: end 3, no restart: node a is unusable: stuck"));
}

namespace {

// A step of Slurm with three nodes; `min_nodes` of them are enough.
Limits of_step(int min_nodes) {
    Limits limits = ddprun::test::limits(min_nodes, 3);
    limits.order = {"a", "b", "c"};
    return limits;
}

// A node whose GPU is missing: it says so right after its Hello.
void comes_unusable(Script& s, double now, int session, const char* name) {
    s.hello(now, session, node(name));
    s.come(now, session, Unusable{"no GPU"});
}

}  // namespace

// All three nodes are needed, and b can run nothing. A step has no other nodes, so the job cannot
// start. It ends with code 2, as after a wrong command line, because no worker has run. The end
// waits for c, so that c does not wait for a job that is gone.
TEST(Machine, NodeOfAStepThatCanRunNothingEndsTheJobAtOnce) {
    Script s(of_step(3));
    s.join(0, 1, node("a"));
    comes_unusable(s, 0.1, 2, "b");
    EXPECT_THAT(s.join(0.1, 2, node("b")), Not(Contains(HasSubstr("create"))));
    EXPECT_THAT(s.join(0.2, 3, node("c")), Contains("create 0: end 2, node b is unusable: no GPU"));
    const Lines end = s.created(0.3);
    for (const char* told : {"1: Finished 2", "3: Finished 2"}) EXPECT_THAT(end, Contains(told));
}

// c never comes. One lease after the first unusable node (1 + 10) the end waits no longer.
TEST(Machine, EndForWantOfUsableNodesIsNotPutOffForEver) {
    Script s(of_step(2));
    comes_unusable(s, 1, 1, "a");
    comes_unusable(s, 2, 2, "b");
    EXPECT_THAT(s.tick(10.9), Not(Contains(HasSubstr("create"))));
    EXPECT_THAT(s.tick(11), Contains("create 0: end 2, node a is unusable: no GPU; and 1 more"));
}

// b has another version, so it never comes. It is told for good, and said once however often it
// calls. The end, with 69, waits for c only.
TEST(Machine, NodeOfAStepWithAnotherVersionEndsTheJobAtOnce) {
    Script s(of_step(3));
    const std::string why =
        "node b runs ddprun 2; the rendezvous on leader runs ddprun 1; use the "
        "same version on all nodes";
    s.join(0, 1, node("a"));
    EXPECT_THAT(
        s.come(0.1, 2, Hello{"job", node("b"), "2", 0}),
        ElementsAre("note: refused a node: " + why, "2: Refused for good: " + why, "2: closed"));
    EXPECT_THAT(s.come(0.2, 3, Hello{"job", node("b"), "2", 0}),
                ElementsAre("3: Refused for good: " + why, "3: closed"));
    EXPECT_THAT(s.join(0.3, 4, node("c")), Contains("create 0: end 69, " + why));
}

// One of an earlier restart of the job, or of another job, does not end this one.
TEST(Machine, AnotherVersionFromElsewhereEndsNothing) {
    Script s(of_step(3));
    s.join(0, 1, node("a"));
    s.join(0, 2, node("c"));
    for (const Hello& other : {Hello{"job", node("b"), "2", 7}, Hello{"job", node("x"), "2", 0}})
        EXPECT_THAT(s.come(0.1, 3, other), Not(Contains(HasSubstr("create"))));
    s.join(0.2, 4, node("b"));
    for (const int session : {1, 2}) s.beat(0.5, session);
    EXPECT_THAT(s.beat(0.5, 4), Contains(HasSubstr("generation 0 {a b c}")));
}

// A second ddprun on a host, of another version, before or after the right one: the node is there.
TEST(Machine, AnotherVersionBesideANodeThatIsHereEndsNothing) {
    Script s(of_step(3));
    s.come(0, 1, Hello{"job", node("b"), "2", 0});
    for (const int i : {2, 3}) s.join(0.1, i, node(i == 2 ? "a" : "b"));
    s.come(0.2, 4, Hello{"job", node("a"), "2", 0});
    s.join(0.3, 5, node("c"));
    for (const int session : {2, 3}) s.beat(0.5, session);
    EXPECT_THAT(s.beat(0.5, 5), Contains(HasSubstr("generation 0 {a b c}")));
}

// Two of three nodes are enough, so a and b start without c, after the last call.
TEST(Machine, NodeThatCanRunNothingMayBeMissing) {
    Script s(of_step(2));
    comes_unusable(s, 0, 3, "c");
    s.join(0, 1, node("a"));
    s.join(0, 2, node("b"));
    for (double now = 1; now < 31; now += 2)  // 30 s of last call
        for (const int session : {1, 2})
            EXPECT_THAT(s.beat(now, session), Not(Contains(HasSubstr("create")))) << now;
    EXPECT_THAT(s.tick(31.1), Contains(HasSubstr("create 0: generation 0 {a b}")));
}

// b is lost and nobody takes its place, so the job ends at the join timeout. The report names the
// loss of b with its own time, since that is what the user has to look at, and not "too few nodes"
// ten minutes later.
TEST(Machine, LostNodeIsTheCauseOfAnEndForWantOfNodes) {
    MachineConfig config = Script::config(limits(2, 2));
    // Some day of 2027. The loss at 3 s on this leader's clock becomes a time of day by this sum.
    config.to_day = sec(1'800'000'000);
    Script s(config);
    s.both_run();
    s.come(3, 2, Gone{node("b")});
    s.vows(3.1, 1, 0);
    // Beats go on, since a silent node would be closed. The join timeout is 600 s.
    for (double now = 3.5; now < 700 && !s.creating().end(); now += 0.5) s.beat(now, 1);
    ASSERT_TRUE(s.creating().end());
    EXPECT_EQ(s.creating().end()->code, 69);
    ASSERT_TRUE(s.creating().end()->loss);
    EXPECT_EQ(s.creating().end()->loss->node, "b");
    EXPECT_EQ(s.creating().end()->loss->sentence, "node b is gone: its ddprun has ended");
    EXPECT_EQ(s.creating().end()->at, sec(1'800'000'003));
    EXPECT_EQ(s.creating().end()->generation, Generation{0});
}

// The same worker fails in the same way three times, before any progress. Nine restarts are
// allowed, but the other ones would only cost time.
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

// A worker of a fails because b is lost, and nobody comes in b's place. The report names the loss
// as the first cause, and the worker as its consequence. Otherwise the user would look for a bug on
// a.
TEST(Machine, ALossThatExplainsAFailureIsTheCauseOfTheEnd) {
    Limits two = limits(2, 2, 3);
    // Short, so that the loop below ends soon.
    two.times.join_timeout = sec(20);
    Script s(two);
    s.both_run();
    s.fails(2, 1, 0, exited(0, 3));
    s.vows(2.1, 1, 0);
    for (double now = 3; now < 23; ++now) s.beat(now, 1);
    const Ending ending = *s.creating().end();
    EXPECT_EQ(ending.code, 69);
    ASSERT_TRUE(ending.loss);
    EXPECT_EQ(ending.loss->sentence,
              "node b is lost: its last message came 1.0 s before rank 0 failed");
    EXPECT_FALSE(ending.first_failure);
    EXPECT_EQ(ending.consequences, 1);
    ASSERT_EQ(ending.told_consequences.size(), 1u);
    EXPECT_EQ(ending.told_consequences[0].after, sec(1));
}

// A node whose workers have all exited stays a member until the others are done. Then the success
// is recorded, and only after that everybody may go.
TEST(Machine, SuccessIsRecordedWhenAllHaveCompleted) {
    Script s(limits(2, 2));
    s.both_run();
    EXPECT_THAT(s.completes(2, 1, 0), ElementsAre("1: Ack holds 0, 6.0 s left"));
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

// A signal reaches one node, and all nodes get a Stop, because a last snapshot needs all ranks. The
// lease goes on until their workers have stopped. Only then the end is written.
TEST(Machine, PlannedStopKeepsTheLease) {
    Script s(limits(2, 2));
    s.both_run();
    EXPECT_THAT(s.come(2, 1, StopAsked{15, "signal 15"}),
                ElementsAre("note: stopping: signal 15 on node a", "1: Stop by signal 15",
                            "2: Stop by signal 15"));
    EXPECT_THAT(s.come(2, 2, StopAsked{2, "signal 2"}), IsEmpty()) << "the first one counts";
    s.beat(3, 1);
    EXPECT_THAT(s.beat(3, 2), ElementsAre("2: Ack holds 0, 6.0 s left"));
    EXPECT_THAT(s.fails(3.5, 1, 0, killed(0, 15)), IsEmpty())
        << "who dies of the stop has not failed";
    s.completes(4, 1, 0);
    EXPECT_THAT(s.completes(4, 2, 0),
                ElementsAre("note: all workers have stopped; generation 0 ends", "1: Ack over 0",
                            "2: Ack over 0", "2: Ack over 0"));
    s.vows(4.1, 1, 0);
    EXPECT_THAT(s.vows(4.1, 2, 0),
                ElementsAre("2: Ack over 0", "create 1: end 143, stopped: signal 15 on node a"));
}
