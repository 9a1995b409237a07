// The rendezvous machine as scripts (machine_script.h): events in, effects out, one effect a line.
// Here: how generations begin and end, their leases, and nodes that come and go. The lease is 10 s:
// H lies 8 s after the oldest echoed Ack, and the margin after H is 2 s.
#include "rendezvous/machine/machine.h"

#include "tests/rendezvous/machine/machine_script.h"

using namespace ddprun;
using namespace ddprun::rendezvous;

// Two nodes come. The generation closes when both have echoed an Ack, since only an echo shows that
// a node hears the leader. Workers start only when the entry is in the ledger: if the create loses,
// another leader's generation counts.
TEST(Machine, FirstGenerationClosesWhenBothAreThereAndConfirmed) {
    Script s(limits(2, 2));
    EXPECT_THAT(s.join(0, 1, node("a")),
                ElementsAre("1: Welcome", "note: node a has joined; nodes so far: 1", "1: Ack"));
    EXPECT_THAT(s.join(0, 2, node("b")),
                ElementsAre("2: Welcome", "note: node b has joined; nodes so far: 2", "2: Ack"));
    EXPECT_THAT(s.beat(0.5, 1), IsEmpty());
    EXPECT_THAT(s.beat(0.5, 2), ElementsAre("create 0: generation 0 {a b} after start"));
    EXPECT_THAT(s.beat(0.55, 1), IsEmpty()) << "nothing starts before the ledger has it";
    EXPECT_THAT(s.created(0.6), ElementsAre("note: generation 0: 2 nodes, 2 workers",
                                            "1: Assigned 0, node 0 of 2, 7.5 s left",
                                            "2: Assigned 0, node 1 of 2, 7.5 s left"));
    EXPECT_EQ(s.snapshot().phase, Phase::running);
    // The Acks that were echoed were sent at 0.
    EXPECT_EQ(s.snapshot().held_until, at(8));
}

// One node of at most two is there. The job waits 30 s for the other, counted from 0.5, when MIN
// was reached. The log says so after 5 s, so that the user does not take the job for dead.
TEST(Machine, FirstGenerationWaitsForTheLastCall) {
    Script s(limits(1, 2));
    s.join(0, 1, node("a"));
    s.beat(0.5, 1);
    EXPECT_EQ(s.next(), at(5));
    for (double now = 1; now < 5; ++now) EXPECT_THAT(s.beat(now, 1), ElementsAre("1: Ack"));
    EXPECT_THAT(s.beat(5, 1),
                ElementsAre("1: Ack", "note: still waiting: 1 of 2 nodes joined (min 1): a"));
    for (double now = 6; now < 30.5; ++now) EXPECT_THAT(s.beat(now, 1), ElementsAre("1: Ack"));
    EXPECT_EQ(s.next(), at(30.5));
    EXPECT_THAT(s.tick(30.5), ElementsAre("create 0: generation 0 {a} after start"));
}

// One worker fails. All nodes hear it in the same step, because the other workers hang in
// collectives now. The next generation begins when both nodes have vowed that their workers are
// gone.
TEST(Machine, FailureEndsTheGenerationForAllInTheSameStep) {
    Script s(limits(2, 2, 3));
    s.both_run();
    EXPECT_THAT(s.fails(2, 2, 0, exited(1, 3)),
                ElementsAre("note: rank 1 exited with 3; generation 0 ends", "1: Ack over 0",
                            "2: Ack over 0"));
    EXPECT_THAT(s.beat(2.1, 1),
                ElementsAre(HasSubstr("telling it to stop its workers"), "1: Ack over 0"))
        << "still stopping; it hears now what has failed";
    EXPECT_THAT(s.vows(2.2, 1, 0), ElementsAre("1: Ack over 0")) << "b has not vowed";
    EXPECT_THAT(s.vows(2.3, 2, 0),
                ElementsAre("2: Ack over 0", "note: restart 1 of 3",
                            "create 1: generation 1 {a b} after rank 1 exited with 3"));
    EXPECT_EQ(s.snapshot().restarts, 1);
}

// b is cut off and never vows, so its workers may still train. a may go on alone only when H (8)
// has passed 2 s ago: by then b has killed its workers. b was heard at 2.6, after the failure on a.
// So its loss does not explain the failure, and a restart is used up.
TEST(Machine, WithoutAFloorTheNextWaitsForTheLease) {
    Script s(limits(1, 2, 3));
    s.both_are_there();
    s.created(0.6);
    s.runs(1, 1, 0);
    s.runs(1, 2, 0);
    EXPECT_EQ(s.snapshot().held_until, at(8));
    s.fails(2, 1, 0, exited(0, 3));
    s.vows(2.1, 1, 0);
    s.beat(2.6, 2);
    for (double now = 3; now < 8; ++now) EXPECT_THAT(s.beat(now, 1), Contains("1: Ack over 0"));
    EXPECT_THAT(s.beat(8.7, 1), ElementsAre("1: Ack over 0", "2: closed")) << "silent for 6 s";
    EXPECT_THAT(s.beat(9.5, 1), ElementsAre("1: Ack over 0"));
    // H + margin is 10. The next generation starts after that moment and not at it.
    EXPECT_EQ(s.next(), at(10) + Duration{1});
    EXPECT_THAT(s.tick(10), IsEmpty());
    EXPECT_THAT(s.tick(10.000001),
                ElementsAre("note: restart 1 of 3",
                            "create 1: generation 1 {a} after rank 0 exited with 3"));
}

// As above, but b was not heard after the failure. So its loss is the first cause, and the failure
// on a is a consequence. With a budget of 0 the job still goes on.
TEST(Machine, ALossThatExplainsAFailureUsesUpNoRestart) {
    Script s(limits(1, 2, 0));
    s.both_run();
    s.fails(2, 1, 0, exited(0, 3));
    s.vows(2.1, 1, 0);
    for (double now = 3; now < 10; ++now) s.beat(now, 1);
    EXPECT_THAT(
        s.tick(10.000001),
        ElementsAre("note: node b is lost: its last message came 1.0 s before rank 0 failed; "
                    "that is the first cause, so no restart is used up",
                    "create 1: generation 1 {a} after node b is lost: its last message "
                    "came 1.0 s before rank 0 failed"));
    EXPECT_EQ(s.creating().assignment.restarts, 0);
    EXPECT_EQ(s.creating().blame.causes.back().node, "b");
}

// Answers are the most expensive part of Beats in a job of ten thousand nodes. Where nothing is
// new, only each second Beat gets one. A Beat with news, or one after a silence, is answered at
// once.
TEST(Machine, EachSecondBeatIsAnswered) {
    Script s(limits(2, 2));
    s.both_run();
    EXPECT_THAT(s.beat(1.5, 1), IsEmpty());
    // H is 8.
    EXPECT_THAT(s.beat(2, 1), ElementsAre("1: Ack holds 0, 6.0 s left"));
    EXPECT_THAT(s.beat(2.5, 1), IsEmpty());
    EXPECT_THAT(s.beat(3.3, 1), ElementsAre("1: Ack holds 0, 4.7 s left")) << "it was away";
    EXPECT_THAT(s.fails(3.5, 2, 0, exited(1, 3)),
                ElementsAre(HasSubstr("generation 0 ends"), "1: Ack over 0", "2: Ack over 0"));
    EXPECT_THAT(s.vows(3.6, 1, 0), ElementsAre("1: Ack over 0")) << "it has something to say";
}

// The leader stands still for 2 s and then finds several Beats of each node. a is answered before
// b's echo moves H from 8 to 9. Its second Beat is answered too, although it came at once: without
// that, a would not know of the longer lease.
TEST(Machine, OfQueuedBeatsTheLastOnesAreAnsweredToo) {
    Script s(limits(2, 2));
    s.both_run();
    EXPECT_THAT(s.beat(3, 1), ElementsAre("1: Ack holds 0, 5.0 s left"));
    EXPECT_THAT(s.beat(3, 2), ElementsAre("2: Ack holds 0, 6.0 s left"));
    EXPECT_THAT(s.beat(3, 1), ElementsAre("1: Ack holds 0, 6.0 s left"));
    EXPECT_THAT(s.beat(3, 1), IsEmpty());
}

// b is silent for so long that 2.5 of the 8 s are left. When it comes back and H grows, all members
// get an Ack at once. Otherwise a's deadline might pass before its next Ack.
TEST(Machine, LateConfirmationIsPushed) {
    Script s(limits(2, 2));
    s.both_run();
    s.beat(3, 1);
    s.beat(5, 1);
    EXPECT_THAT(s.beat(5.5, 2),
                ElementsAre("1: Ack holds 0, 4.0 s left", "2: Ack holds 0, 3.5 s left"));
}

// Nobody hears b any more. The lease ends the generation by itself, and the log says which node was
// silent and for how long.
TEST(Machine, PassedLeaseEndsTheGeneration) {
    Script s(limits(2, 2));
    s.both_run();
    s.beat(8, 1);
    EXPECT_EQ(s.next(), at(8) + Duration{1});
    EXPECT_THAT(s.tick(8), IsEmpty());
    EXPECT_THAT(
        s.tick(8.000001),
        ElementsAre(
            "note: node b has confirmed nothing for 8.0 s (lease 10.0 s); generation 0 ends",
            "1: Ack over 0", "2: Ack over 0"));
}

// A broken connection proves nothing: b may still train. The keeper's last message does, if it
// comes on the node's own session. If one node could say it of another, a wrong word would start a
// second generation.
TEST(Machine, GoneIsProofAndALostConnectionIsNot) {
    Script s(limits(2, 2));
    s.both_run();
    EXPECT_THAT(s.step(2, ConnectionLost{Session{2}}), IsEmpty());
    EXPECT_THAT(s.come(2, 1, Gone{node("b")}), IsEmpty()) << "a cannot say it of b";
    EXPECT_EQ(s.snapshot().phase, Phase::running);
    // The connection that the keeper has a duplicate of.
    EXPECT_THAT(s.hello(2.1, 3, node("b")), ElementsAre("3: Welcome"));
    EXPECT_THAT(s.come(2.1, 3, Gone{node("b")}),
                ElementsAre("note: node b is gone: its ddprun has ended; generation 0 ends",
                            "1: Ack over 0"));
    // A process that is proven gone cannot come back; its successor has another incarnation.
    EXPECT_THAT(s.hello(2.2, 4, node("b")), ElementsAre(HasSubstr("already reported gone"),
                                                        HasSubstr("4: Refused"), "4: closed"));
}

// b's ddprun was killed and a new one has started. Nobody waits for the old one's vow, and the new
// one takes its rank. The loss is no worker's failure, so a budget of 0 is enough.
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

// b loses its connection before it gets its Assigned. On the new connection it gets it again. But
// when b vows instead, nobody can run the generation any more, and it ends.
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

// a and b run with the node ranks 0 and 1, and another ddprun of b comes with b's.
void run_two_and_come_again(Script& s) {
    for (const int i : {1, 2}) s.join(0, i, node(i == 1 ? "a" : "b"), offer_of_rank(i - 1));
    for (const int i : {1, 2}) s.beat(0.5, i);
    s.created(0.6);
    for (const int i : {1, 2}) s.runs(1, i, 0);
    s.join(2, 3, node("b", 2), offer_of_rank(1));
}

// A second job on the same two hosts, also without --rdzv-id: its first node finds the port in use,
// and its second one would wait here for the end of a job that is not its own, and end with 0.
TEST(Machine, ASpareWithTheRankOfANodeThatRunsIsRefused) {
    Script s(limits(2, 2));
    run_two_and_come_again(s);
    for (double now = 3; now < 8; ++now)
        for (const int i : {1, 2, 3})
            EXPECT_THAT(s.beat(now, i), Not(Contains(HasSubstr("refused")))) << now;
    for (const int i : {1, 2}) s.beat(8, i);
    EXPECT_THAT(s.beat(8, 3),
                ElementsAre("note: refused a node: node b has --node-rank=1, as has node b, which "
                            "runs; two jobs need two ports, or each its own --rdzv-id; a spare has "
                            "no --node-rank",
                            HasSubstr("3: Refused: node b has"), "3: closed"));
}

// A ddprun that was killed and started again at once. The connection of the first one may still be
// there, but it says nothing more.
TEST(Machine, AProcessThatComesAnewIsNotRefusedForItsOwnRank) {
    Script s(limits(2, 2));
    run_two_and_come_again(s);
    s.beat(2.1, 2);
    for (double now = 3; now < 12; ++now)
        for (const int i : {1, 3})
            EXPECT_THAT(s.beat(now, i), Not(Contains(HasSubstr("refused")))) << now;
}

// A caller that lies anew each time fills no log.
TEST(Machine, SaysAHundredRefusalsAtMost) {
    Script s(limits(2, 2));
    int said = 0;
    std::string last;
    for (int i = 0; i < 150; ++i)
        for (const std::string& line :
             s.come(0, 100 + i, Hello{std::to_string(i), node("x"), "1", 0}))
            if (line.starts_with("note: ")) ++said, last = line;
    EXPECT_EQ(said, 100);
    EXPECT_TRUE(last.ends_with("; further ones are refused without a line")) << last;
}

// A create may take long on a slow file system, and b leaves meanwhile. The generation exists, but
// nobody gets an Assigned: a would wait for b in its first collective.
TEST(Machine, WhoLeavesWhileItIsRecordedEndsItUnannounced) {
    Script s(limits(2, 2));
    s.both_are_there();
    EXPECT_THAT(s.come(0.55, 2, Leave{"stopped by signal 15"}),
                ElementsAre("note: node b left: stopped by signal 15"));
    EXPECT_THAT(
        s.created(0.6),
        ElementsAre("note: node b left while the generation was being recorded; generation 0 ends",
                    "1: Ack over 0", "2: Ack over 0"));
}

// Two jobs of one user share a port by mistake. The message says which two options to look at.
TEST(Machine, WrongRunIsRefused) {
    Script s(limits(1, 2));
    const std::string why =
        "node x belongs to run \"other\"; this is run \"job\" (--rdzv-id, --rdzv-endpoint)";
    EXPECT_THAT(s.hello(0, 1, node("x"), "other"),
                ElementsAre("note: refused a node: " + why, "1: Refused: " + why, "1: closed"));
    EXPECT_THAT(s.come(0, 1, Beat{}), IsEmpty()) << "a stranger's words count for nothing";
}

// Who reads it on the refused host learns which host has which version.
TEST(Machine, AnotherVersionIsRefusedWithBothHosts) {
    Script s(limits(1, 2));
    EXPECT_THAT(
        s.come(0, 1, Hello{"job", node("x"), "2", 0}),
        Contains("1: Refused for good: node x runs ddprun 2; the rendezvous on leader runs ddprun "
                 "1; use the same version on all nodes"));
}

// Ranks of MPI would wait for those of a node that does not serve them.
TEST(Machine, ANodeWithoutPmiIsRefusedWhereTheOthersHaveIt) {
    for (const bool pmi : {true, false}) {
        Script s([&] {
            Limits all = limits(1, 2);
            all.pmi = pmi;
            return all;
        }());
        Hello other{"job", node("x"), "1", 0};
        other.limits.pmi = !pmi;
        const std::string said = pmi ? "1: Refused: node x was started without --pmi; this job was "
                                       "started with it; give all nodes the same command"
                                     : "1: Refused: node x was started with --pmi; this job was "
                                       "started without it; give all nodes the same command";
        EXPECT_THAT(s.come(0, 1, other), Contains(said));
        other.limits.pmi = pmi;
        EXPECT_THAT(s.come(0, 2, other), ElementsAre("2: Welcome"));
    }
}

// The service runs outside of the job, as ddprun-rendezvous. There even a job of one node has a
// lease, because a spare may follow it: the silence of a ends the generation, and the spare goes on
// after the margin.
TEST(Machine, HoldsALeaseForAJobOfOneNodeWhenItIsOutside) {
    MachineConfig config = Script::config(limits(1, 1));
    config.outside = true;
    Script s(config);
    s.join(0, 1, node("a"));
    s.beat(0.5, 1);
    EXPECT_THAT(s.created(0.6), Contains(HasSubstr("1: Assigned 0, node 0 of 1, ")));
    s.runs(1, 1, 0);
    s.join(2, 2, node("spare"));
    // a's newest echo is of an Ack sent before 1, so H has passed at 9.1.
    EXPECT_THAT(s.tick(9.1), Contains(HasSubstr("generation 0 ends")));
    s.vows(9.2, 2, 0);
    EXPECT_THAT(s.vows(11.1, 2, 0), Contains(HasSubstr("create 1: generation 1 {spare}")));
}

// A Welcome that says "one node" makes the node send no Beats. A service outside of the job needs
// them, so it never says that.
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

// c comes while a and b run, and up to three may run. At the next snapshot all workers are stopped
// as planned. The lease goes on until they have stopped, and the next generation has three nodes.
// The budget of 0 shows that this costs no restart.
TEST(Machine, LateNodeIsTakenInAtTheNextSnapshot) {
    Limits three = limits(2, 3, 0);
    // So a and b start without a wait for c.
    three.times.last_call = sec(0);
    Script s(three);
    s.both_run();
    EXPECT_THAT(s.join(2, 3, node("c")),
                ElementsAre("3: Welcome", "note: node c has joined; nodes so far: 3", "3: Parked",
                            "3: Ack holds 0"));
    EXPECT_THAT(s.beat(2.1, 3), IsEmpty());
    EXPECT_THAT(s.snapshots(2.2, 1, 40),
                ElementsAre(HasSubstr("1: Ack"), "note: c joined: growing from 2 to 3 of 3 nodes",
                            "1: Stop by signal 15", "2: Stop by signal 15"));
    EXPECT_THAT(s.fails(2.3, 2, 0, killed(1, 15)), IsEmpty()) << "who dies of the stop";
    s.completes(2.4, 1, 0);
    EXPECT_THAT(s.completes(2.5, 2, 0).front(),
                "note: c joined: growing from 2 to 3 of 3 nodes; generation 0 ends");
    s.vows(2.6, 1, 0);
    EXPECT_THAT(s.vows(2.6, 2, 0), Not(Contains(HasSubstr("create")))) << "c has not vowed yet";
    EXPECT_EQ(s.vows(2.6, 3, 0).back(),
              "create 1: generation 1 {a b c} after c joined: growing from 2 to 3 of 3 nodes");
    EXPECT_EQ(s.creating().assignment.restarts, 0);
}

// With --on-join=spare the world never grows, though four would fit. After a failure a and b go on
// alone. When b is lost, c takes its place at once.
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

// With --task-per-worker each task is a node of the protocol. A reader of the log counts hosts.
TEST(Machine, TasksOfAHostAreOneNodeInTheLog) {
    Script s(limits(2, 2));
    s.join(0, 1, node("a/0"));
    s.join(0, 2, node("a/1"));
    s.beat(0.5, 1);
    s.beat(0.5, 2);
    EXPECT_THAT(s.created(0.6), Contains("note: generation 0: 1 node, 2 workers"));
}
