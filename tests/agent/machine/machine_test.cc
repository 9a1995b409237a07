// The agent machine as scripts (machine_script.h): events in, effects out, one effect a line. Here:
// the link to the leader, the lease, and the life of the workers (rendezvous/PROTOCOL.md, rules 1
// to 6).
#include "tests/agent/machine/machine_script.h"

namespace ddprun::agent {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// The leader may count on a node only after an echo, so the first Ack is echoed at once. Later
// echoes wait for the next Beat, which comes 0.5 s after the one before.
TEST(AgentMachine, JoinsAndEchoesTheFirstAckAtOnce) {
    Script s;
    EXPECT_THAT(s.step(0, Started{}), ElementsAre("connect until 10 m 00 s"));
    EXPECT_THAT(s.welcome(0), ElementsAre("Join: Beat echo 0 floor -1 running -1"));
    EXPECT_THAT(s.ack(0.1), ElementsAre("Beat echo 1 floor -1 running -1"));
    EXPECT_THAT(s.ack(0.2), IsEmpty());
    EXPECT_EQ(s.next(), at(0.6));
    EXPECT_THAT(s.tick(0.6), ElementsAre("Beat echo 2 floor -1 running -1"));
}

// The GPU is missing. The leader must know that before the Join, because the Join might complete a
// generation with this node in it.
TEST(AgentMachine, IsUnusableFromTheStart) {
    Script s(MachineConfig{.unusable = "no GPU"});
    s.step(0, Started{});
    EXPECT_THAT(s.welcome(0), ElementsAre("Unusable: no GPU", HasSubstr("Join")));
    EXPECT_THAT(s.told(1, rendezvous::Finished{ending(rendezvous::Verdict::unavailable, 2, "b")}),
                ElementsAre("Leave", "exit 2"));
}

// A worker hangs in the kernel and outlives SIGKILL. After 60 s the machine asks what is left,
// tells the leader, and stays to hear the end of the job. A worker that ends after that changes
// nothing: the others have gone on without this node.
TEST(AgentMachine, IsUnusableWhenAWorkerOutlivesSigkill) {
    Script s;
    s.run();
    s.exits(1, exited(0, 7));
    Lines late;
    for (double now = 1.5; late.empty() && now < 100; now += 0.5) {  // SIGKILL comes at 6
        for (const std::string& line : but_beats(s.tick(now)))
            if (line.starts_with("look")) late.push_back(line);
        s.ack(now);
    }
    // The Acks above keep the leader from counting as lost.
    ASSERT_THAT(late, ElementsAre("look for stuck after 60.0 s"));
    EXPECT_THAT(s.step(68, CannotKill{Generation{0}, "rank 1 hangs"}),
                Contains("Unusable: rank 1 hangs"));
    EXPECT_THAT(but_beats(s.step(68.1, Swept{Generation{0}})), IsEmpty());
    rendezvous::Ending end = ending(rendezvous::Verdict::worker_failed, 7, "no restart");
    EXPECT_THAT(s.told(68.2, rendezvous::Finished{end}),
                ElementsAre("deadline never", "Leave", "exit 7"));
}

// The usual case: all workers are gone soon after SIGKILL. Then no question is open.
TEST(AgentMachine, DoesNotLookForWhatWasSwept) {
    Script s;
    s.run();
    s.exits(1, exited(0, 7));
    s.exits(1.1, exited(1, 1));
    s.step(1.2, Swept{Generation{0}});
    for (double now = 2; now < 100; now += 0.5)
        for (const std::string& line : s.tick(now)) EXPECT_FALSE(line.starts_with("look")) << line;
}

// The keeper gets the deadline before the workers start, so no worker ever runs without one. A
// repeated Assigned starts nothing twice.
TEST(AgentMachine, StartsWhatItIsAssigned) {
    Script s;
    s.join();
    EXPECT_THAT(s.assigned(0.2, 8), ElementsAre("deadline 8.1 s", "open store", "spawn 0",
                                                "Beat echo 1 floor -1 running 0"));
    EXPECT_THAT(s.assigned(0.3, 8), IsEmpty()) << "said twice";
    // Beat 3 was sent at 0.2.
    EXPECT_THAT(s.ack(0.3, -1, 3, sec(8.5)), ElementsAre("deadline 8.7 s"));
}

// The Assigned was under way for too long. If the node started now, its workers would run beside
// the next generation. It vows at once, so that the others need not wait for the lease.
TEST(AgentMachine, RefusesAnAssignmentWhoseDeadlineHasPassed) {
    Script s;
    s.join();
    EXPECT_THAT(s.assigned(0.3, 0.1),
                ElementsAre("note: generation 0 cannot start here: its lease has expired",
                            "Beat echo 1 floor 0 running -1"));
    // A vow is final, also for a second Assigned with time left.
    EXPECT_THAT(s.assigned(0.3, 8), IsEmpty());
}

// The node is cut off: no Ack extends its lease. At the deadline all workers are killed, since the
// others may go on soon after. The vow follows when the keeper has verified that nothing is left.
TEST(AgentMachine, PassedDeadlineSweeps) {
    Script s;
    s.run();
    // It keeps the link alive but grants nothing.
    s.ack(5);
    EXPECT_THAT(but_beats(s.tick(8)), IsEmpty());
    EXPECT_EQ(s.next(), at(8.1));
    EXPECT_THAT(s.tick(8.1), ElementsAre(HasSubstr("lease of generation 0 expired"), "sweep 0"));
    EXPECT_THAT(s.exits(8.12, killed(0, 9)), IsEmpty()) << "killed by us: no failure";
    EXPECT_THAT(
        s.step(8.15, Swept{g0}),
        ElementsAre("close store", "deadline never",
                    "Join: Beat echo 2 floor 0 running -1 knows of 0, the lease has expired "
                    "on node a; its leader, node leader, was last heard 3.1 s before"));
}

// The program is not there on this node. That is a failure like any other, and its sentence says
// why.
TEST(AgentMachine, ReportsAWorkerThatCannotStart) {
    Script s;
    s.run();
    EXPECT_THAT(
        s.step(0.3, WorkerNotStarted{g0, 1, "cannot execute ./train: not found", 127}),
        ElementsAre(
            "Report: rank 1 (local 1 on a) was not started: cannot execute ./train: not found",
            "signal 15"));
}

// Another node's worker has failed. The Ack says that generation 0 is over, and the workers here
// stop too. A worker that dies of that stop has not failed, or the report would name the wrong one.
TEST(AgentMachine, OverStopsTheWorkers) {
    Script s;
    s.run();
    EXPECT_THAT(s.ack(0.3, 0), ElementsAre("signal 15"));
    EXPECT_THAT(s.exits(0.4, killed(0, 15)), IsEmpty());
    EXPECT_THAT(s.exits(0.4, killed(1, 15)), ElementsAre("sweep 0"));
    EXPECT_THAT(s.step(0.41, Swept{g0}), ElementsAre("close store", "deadline never",
                                                     "Join: Beat echo 2 floor 0 running -1"));
}

// A node without workers vows too. Otherwise a late Assigned could still start that generation
// here, so nobody could go on without this node.
TEST(AgentMachine, OverRaisesTheFloorOfAnIdleNode) {
    Script s;
    s.join();
    EXPECT_THAT(s.ack(0.2, 0), ElementsAre("Beat echo 2 floor 0 running -1"));
}

// The leader is lost and another one takes over. These facts stand in no ledger entry yet, so the
// Join of each new connection says all that the node knows: its own failure, and the lost node of
// which it heard by the old leader.
TEST(AgentMachine, ANewLeaderHearsWhatIsKnownOfTheGeneration) {
    Script s;
    s.run();
    s.step(0.2, WorkerProgress{g0, 7, -1});
    s.exits(0.3, exited(1, 3));
    s.exits(0.4, killed(0, 15));
    EXPECT_THAT(s.step(0.5, Swept{g0}),
                Contains("Join: Beat echo 1 floor 0 running -1 knows of 0, progressed"))
        << "the failure was told to this leader";
    // The leader says in an Ack what it knows of the generation.
    rendezvous::Ack ack;
    ack.number = 9;
    ack.entry = EntryNumber{0};
    ack.facts = rendezvous::Facts{.generation = g0};
    ack.facts->interruption = rendezvous::Interruption{"n", "node n is lost", true};
    s.told(0.6, ack);
    s.step(0.7, LinkLost{"reset"});
    EXPECT_THAT(s.welcome(0.8),
                Contains(testing::EndsWith("exited with 3 0.5 s ago, node n is lost")));
}

// All workers have exited 0 here, and those of the other node still train. The node stays a member
// with its lease. If it vowed now, the generation would end for the others.
TEST(AgentMachine, WaitsUntilTheGenerationIsOver) {
    Script s;
    s.run();
    EXPECT_THAT(s.exits(0.3, exited(0, 0)), IsEmpty());
    EXPECT_THAT(s.exits(0.3, exited(1, 0)), ElementsAre("sweep 0"));
    EXPECT_THAT(s.step(0.4, Swept{g0}), ElementsAre("Beat echo 1 floor -1 running 0 complete"));
    EXPECT_EQ(s.snapshot().phase, Phase::waiting);
    EXPECT_EQ(s.snapshot().running, g0);
    EXPECT_THAT(s.ack(0.5, 0), ElementsAre("close store", "deadline never",
                                           "Join: Beat echo 2 floor 0 running -1"));
}

// Nobody else may lead here, so the node calls the same leader again. After 2 L = 20 s its workers
// have stopped long ago, and it gives up.
TEST(AgentMachine, LinkLostForTwoLeasesIsUnavailable) {
    Script s;
    s.join();
    EXPECT_THAT(s.step(1, LinkLost{"reset"}),
                ElementsAre("note: the link to the rendezvous is lost: reset; reconnecting",
                            "connect until 21.0 s"));
    EXPECT_THAT(s.step(20, LinkLost{"no route"}), ElementsAre("connect until 21.0 s"));
    EXPECT_THAT(s.step(21, LinkLost{"no route"}), ElementsAre("exit 69"));
}

// The leader's host is frozen or cut off, so the connection stays open. After 0.6 L without an Ack
// (0.1 + 6) the leader counts as lost.
TEST(AgentMachine, SilentLeaderIsTakenForLost) {
    Script s;
    s.join();
    for (double now = 0.5; now < 6.1; now += 0.5) EXPECT_THAT(but_beats(s.tick(now)), IsEmpty());
    EXPECT_EQ(s.next(), at(6.1));
    EXPECT_THAT(s.tick(6.1), ElementsAre(HasSubstr("no answer for 6.0 s"), "connect until 26.1 s"));
}

// This node itself stood still, and the leader's Acks lie unread: it reads them before it judges.
// Where none is there, the leader is lost a little later.
TEST(AgentMachine, ANodeThatStoodStillDoesNotTakeItsLeaderForLost) {
    for (const bool answered : {true, false}) {
        Script s;
        s.join();
        EXPECT_THAT(but_beats(s.tick(7)), IsEmpty());
        EXPECT_EQ(s.next(), at(7.5));  // the next Beat
        if (answered) s.ack(7.01);
        EXPECT_THAT(but_beats(s.tick(7.5)), IsEmpty());
        const Lines later = s.tick(8);
        EXPECT_EQ(later.size(), answered ? 1U : 2U);
        EXPECT_THAT(later, Contains(answered ? HasSubstr("Beat") : HasSubstr("no answer for 6.0")));
    }
}

// The rendezvous never answers, for example because of a wrong host name. The job ends at the join
// timeout, and not at the lease, since nodes may be slow at the start.
TEST(AgentMachine, NeverWelcomedGivesUpAtTheJoinTimeout) {
    Script s;
    s.step(0, Started{});
    EXPECT_THAT(s.step(599, LinkLost{"refused"}), ElementsAre("connect until 10 m 00 s"));
    EXPECT_THAT(s.step(600, LinkLost{"refused"}), ElementsAre("exit 69"));
}

TEST(AgentMachine, FinishedLeavesAndExits) {
    Script s;
    s.join();
    EXPECT_THAT(s.told(1, rendezvous::Finished{ending(rendezvous::Verdict::worker_failed, 3,
                                                      "no restart")}),
                ElementsAre("Leave", "exit 3"));
    EXPECT_THAT(s.tick(2), IsEmpty());
    EXPECT_EQ(s.next(), kNever);
}

// Another job with the same run id may have begun while this node was away. So the Join says to
// which job the node belongs: the one by which it heard of its first entry. The leader can then
// refuse it.
TEST(AgentMachine, SaysOfWhichJobItHasHeardAnEntry) {
    Machine machine({.run_id = "job", .node = node("a"), .offer = offer(1), .version = "1"}, at(0));
    const auto welcomed_to = [&](std::uint64_t job) {
        std::uint64_t said = 99;
        const rendezvous::Welcome welcome{node("leader"), {}, {}, 2, {}, "", 0, job};
        for (const Effect& effect : machine.step(at(0), MessageCame{welcome}))
            if (const auto* sent = std::get_if<SendMessage>(&effect))
                if (const auto* join = std::get_if<rendezvous::Join>(&sent->message))
                    said = join->job;
        return said;
    };
    machine.step(at(0), Started{});
    // No entry has been heard of yet, so the node belongs to no job.
    EXPECT_EQ(welcomed_to(6), 0u);
    EXPECT_EQ(welcomed_to(7), 0u);
    rendezvous::Ack ack;
    ack.number = 1;
    ack.entry = EntryNumber{0};
    machine.step(at(0), MessageCame{ack});
    EXPECT_EQ(welcomed_to(7), 7u);
    EXPECT_EQ(welcomed_to(8), 7u);
}

TEST(AgentMachine, RefusedExits) {
    Script s;
    s.step(0, Started{});
    EXPECT_THAT(s.told(1, rendezvous::Refused{"other run"}), ElementsAre("exit 69"));
}

// A restarted rendezvous does not know what runs here and refuses the node. The workers cannot go
// on. They are stopped first, and the node calls nobody meanwhile, since the answer would be the
// same.
TEST(AgentMachine, RefusedWhileWorkersRunStopsThem) {
    Script s;
    s.run();
    EXPECT_THAT(s.told(0.3, rendezvous::Refused{"another ledger"}), Contains("signal 15"));
    EXPECT_THAT(s.step(0.4, LinkLost{"it has ended the connection"}), IsEmpty());
    s.exits(0.5, exited(0, 0));
    s.exits(0.5, exited(1, 0));
    EXPECT_THAT(s.step(0.6, Swept{Generation{0}}), Contains("exit 69"));
}

// The keeper was killed, and its workers died with it. So the node vows. Until there is a new
// keeper nothing may start here: nobody would kill the workers at their deadline.
TEST(AgentMachine, KeeperDeathIsAVow) {
    Script s;
    s.run();
    EXPECT_THAT(s.step(0.3, KeeperDied{}),
                ElementsAre(HasSubstr("keeper has died"), "close store", "deadline never",
                            "Join: Beat echo 1 floor 0 running -1 knows of 0, the keeper of node a "
                            "has died"));
    EXPECT_THAT(s.told(0.4, rendezvous::Assigned{EntryNumber{1}, first_of_two(1), 3, sec(8)}),
                ElementsAre("note: generation 1 cannot start here: the keeper is being replaced",
                            "Beat echo 1 floor 1 running -1"));
    s.step(0.5, KeeperBack{});
    EXPECT_THAT(
        s.told(0.6, rendezvous::Assigned{EntryNumber{2}, first_of_two(2), 3, sec(8)}),
        ElementsAre("deadline 8.2 s", "open store", "spawn 2", "Beat echo 1 floor 1 running 2"));
}

// No failure is reported, so no restart is used up. The next generation is told to nobody before
// the workers are gone.
TEST(AgentMachine, AWarmStartThatDiffersInterruptsTheGeneration) {
    Script s;
    s.run();
    EXPECT_THAT(s.step(0.3, WarmStartDiffers{Generation{0}, 1, "variable A is another one",
                                             Time{sec(0.3)}}),
                ElementsAre("sweep 0"));
    EXPECT_THAT(
        s.step(0.4, Swept{Generation{0}}),
        ElementsAre("close store", "deadline never",
                    "Join: Beat echo 1 floor 0 running -1 knows of 0, a cold start of rank 1 "
                    "on a would differ from its warm start (variable A is another one)"));
}

// A frozen keeper is killed like one that has died. If it cannot be killed, the sweep that begins
// here finds out what hangs.
TEST(AgentMachine, AFrozenKeeperEndsTheGeneration) {
    Script s;
    s.run();
    EXPECT_THAT(s.step(0.3, KeeperFrozen{}), ElementsAre("sweep 0"));
    EXPECT_THAT(s.step(0.4, KeeperDied{"did not answer for 5.0 s and was killed"}),
                ElementsAre("note: the keeper did not answer for 5.0 s and was killed; the workers "
                            "of this node died with it",
                            "close store", "deadline never",
                            "Join: Beat echo 1 floor 0 running -1 knows of 0, the keeper of node a "
                            "did not answer for 5.0 s and was killed"));
}

// No keeper, no workers. The node says so at once, and again to each new leader.
TEST(AgentMachine, ANodeWithoutAKeeperIsUnusable) {
    Script s;
    s.run();
    s.step(0.3, KeeperDied{});
    EXPECT_THAT(s.step(0.3, NoKeeper{"no process"}),
                ElementsAre("note: no new keeper can be started: no process",
                            "Unusable: no new keeper can be started: no process"));
}

// Whether a failure uses up a restart depends on progress, and a failure may follow at once. So the
// first progress does not wait for the next Beat.
TEST(AgentMachine, Rule1d_FirstProgressIsSaidAtOnce) {
    Script s;
    s.run();
    EXPECT_THAT(s.step(0.3, WorkerProgress{g0, 5, -1}),
                ElementsAre(HasSubstr("Beat echo 1 floor -1 running 0 progressed")));
    EXPECT_THAT(s.step(0.31, WorkerProgress{g0, 6, -1}), IsEmpty());
}

// The leader needs the slowest ranks when the job hangs. Each Beat names them, with the number of
// reports and the age of the newest one. A worker that has ended is not waited for, so it is not
// named.
TEST(AgentMachine, BeatsSayWhoIsTheSlowest) {
    Script s;
    s.run();
    s.step(0.3, WorkerProgress{g0, 5, -1, 1});
    EXPECT_THAT(s.tick(0.8), ElementsAre("Beat echo 1 floor -1 running 0 progressed reports 1 "
                                         "0.5 s ago 1@5 0@-1"));
    s.step(0.9, WorkerProgress{g0, 4, -1, 0});
    EXPECT_THAT(s.tick(1.3), ElementsAre("Beat echo 1 floor -1 running 0 progressed reports 2 "
                                         "0.4 s ago 0@4 1@5"));
    s.exits(1.4, exited(0, 0));
    EXPECT_THAT(s.tick(1.8), ElementsAre(HasSubstr("reports 2 0.9 s ago 1@5")));
}

// The leader adds up what a restart costs, from the marks of all nodes. While a generation runs
// they are about its start, and after that about its end.
TEST(AgentMachine, BeatsSayWhichPhasesArePast) {
    Script s;
    s.run();
    s.step(0.3, WorkerStarted{g0, 0, 1});
    EXPECT_THAT(s.marks(0.6), IsEmpty()) << "not all have started";
    s.step(0.7, WorkerStarted{g0, 1, 2});
    s.step(0.8, StoreContact{g0});
    s.step(0.9, StoreContact{g0});
    s.step(1.0, WorkerProgress{g0, 1, -1});
    EXPECT_THAT(s.marks(1.5),
                ElementsAre("0.8 s started", "0.7 s store contact", "0.5 s progress"));
    // Generation 0 is over at 2.
    s.ack(2, 0);
    s.exits(2.2, killed(0, 15));
    s.exits(2.4, killed(1, 15));
    s.step(2.5, Swept{g0});
    EXPECT_THAT(s.marks(3), ElementsAre("1.0 s told", "0.6 s stopped", "0.5 s gone"));
}

// A loss that is no number is told with its rank and step, once in a generation.
TEST(AgentMachine, SaysOnceThatALossIsNoNumber) {
    Script s;
    s.run();
    s.step(0.3, WorkerProgress{g0, 5, -1});
    EXPECT_THAT(s.step(0.4, WorkerProgress{g0, 6, -1, 1, {}, "loss=nan"}),
                ElementsAre("note: rank 1 (local 1) has reported loss=nan at step 6; it is said "
                            "once in a generation"));
    EXPECT_THAT(s.step(0.5, WorkerProgress{g0, 7, -1, 0, {}, "loss=nan"}), IsEmpty());
}

// What the node sees of its workers goes with its Beats.
TEST(AgentMachine, Rule22m_BeatsSayWhichWorkersStandStill) {
    Script s;
    s.run();
    s.step(0.3, WorkersStill{g0, {{0b11, rendezvous::Doing::sleeps, sec(6), {}, 7}}});
    EXPECT_THAT(s.tick(0.8), ElementsAre("Beat echo 1 floor -1 running 0 still 1"));
    s.step(0.9, WorkersStill{g0, {}});
    EXPECT_THAT(s.tick(1.3), ElementsAre("Beat echo 1 floor -1 running 0"));
    // Of a generation that does not run here.
    s.step(1.4, WorkersStill{Generation{1}, {{0b11, rendezvous::Doing::sleeps, sec(6), {}, 7}}});
    EXPECT_THAT(s.tick(1.8), ElementsAre("Beat echo 1 floor -1 running 0"));
}

// The job hangs and the leader asks where ranks 1 and 3 are. Rank 3 is on the other node. After a
// stop has begun there is nothing left to examine.
TEST(AgentMachine, Rule22j_ExaminesItsOwnWorkersWhileTheyRun) {
    Script s;
    s.run();
    EXPECT_THAT(s.told(0.3, rendezvous::Examine{g0, {1, 3}}), ElementsAre("examine 1"));
    rendezvous::WorkerOutcome seen;
    seen.local_rank = 1;
    EXPECT_THAT(s.step(0.4, WorkersExamined{g0, {seen}}),
                ElementsAre("Beat echo 1 floor -1 running 0", "Report hung 1"))
        << "the leader knows what they do now before it has the answer";
    EXPECT_THAT(s.step(0.4, WorkersExamined{g0, {}}), Contains("Report"))
        << "the leader waits for those without such workers, too";
    // A question about another generation.
    EXPECT_THAT(s.told(0.4, rendezvous::Examine{Generation{1}, {1}}), IsEmpty());
    s.ack(0.5, 0);
    EXPECT_THAT(s.told(0.6, rendezvous::Examine{g0, {1}}), IsEmpty());
}

// A process whose functions nobody could read writes them when it is ended for the hang, and the
// leader gets them. Other ends of a generation leave it the usual signal.
TEST(AgentMachine, Rule22k_AbortsAtAHangWhatCouldNotBeRead) {
    for (const bool hung : {true, false}) {
        Script s;
        s.run();
        s.told(0.3, rendezvous::Examine{g0, {1}});
        rendezvous::WorkerOutcome seen;
        seen.local_rank = 1;
        s.step(0.4, WorkersExamined{.generation = g0, .outcomes = {seen}, .unread = {4711}});
        seen.hung = hung;
        seen.exit_code = hung ? 0 : 1;
        const rendezvous::Facts facts{.generation = g0, .failures = {{"b", seen}}};
        EXPECT_THAT(s.ack(0.5, 0, 0, {}, facts),
                    Contains(hung ? "signal 15, abort 4711" : "signal 15"));
        rendezvous::WorkerOutcome aborted;
        aborted.rank = aborted.local_rank = 1;
        aborted.signal = 6;
        if (hung) aborted.stack = {"in evaluate (eval.py:88)"};
        // What has died without such words died of the stop, and that is no failure.
        const auto said = s.step(0.6, WorkerExited{g0, aborted, at(0.6)});
        if (hung)
            EXPECT_THAT(said, Contains("Report hung 1"));
        else
            EXPECT_THAT(said, Not(Contains(HasSubstr("Report"))));
    }
}

// A job of one node has no regular Beats. With a hang timeout the leader still has to hear of
// progress. Three reports within a Beat period become two messages, so that a program may report
// each step.
TEST(AgentMachine, AloneItTellsProgressWhereAHangCounts) {
    for (const bool hangs : {true, false}) {
        MachineConfig config{
            .run_id = "job", .node = node("a"), .offer = offer(1), .requeue = 0, .version = "1"};
        if (hangs) config.limits.hang_timeout = sec(30);
        Machine machine(config, at(0));
        const auto step = [&](double now, const Event& event) {
            Lines all;
            for (const Effect& effect : machine.step(at(now), event))
                all.push_back(describe(effect));
            return all;
        };
        step(0, Started{});
        step(0, MessageCame{rendezvous::Welcome{node("a"), {}, {}, 1, {}, {}}});
        rendezvous::NodePlace alone;
        alone.generation = g0;
        step(0.2, MessageCame{rendezvous::Assigned{EntryNumber{0}, alone, 1, Duration::max()}});
        // The first progress is always said at once.
        EXPECT_THAT(step(1, WorkerProgress{g0, 1, -1}),
                    ElementsAre(HasSubstr("progressed reports 1 0 ms ago 0@1")));
        step(1.2, WorkerProgress{g0, 2, -1});
        step(1.4, WorkerProgress{g0, 3, -1});
        // The first Beat since 1 is due after a period of 0.5 s.
        EXPECT_EQ(machine.next_deadline(), hangs ? at(1.5) : kNever);
        if (!hangs) continue;
        EXPECT_THAT(step(1.5, Tick{}), ElementsAre(HasSubstr("reports 3 0.1 s ago 0@3")));
        EXPECT_EQ(machine.next_deadline(), kNever);
    }
}

}  // namespace
}  // namespace ddprun::agent
