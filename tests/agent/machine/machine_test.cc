// The agent machine as scripts: events in, effects out, one effect a line.
#include "tests/agent/machine/machine_script.h"

namespace ddprun::agent {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Found, welcomed, joined; the first Ack is echoed at once, later ones with the next beat.
TEST(AgentMachine, JoinsAndEchoesTheFirstAckAtOnce) {
    Script s;
    EXPECT_THAT(s.step(0, Started{}), ElementsAre("connect until 10 m 00 s"));
    EXPECT_THAT(s.welcome(0), ElementsAre("Join: Beat echo 0 floor -1 running -1"));
    EXPECT_THAT(s.ack(0.1), ElementsAre("Beat echo 1 floor -1 running -1"));
    EXPECT_THAT(s.ack(0.2), IsEmpty());
    EXPECT_EQ(s.next(), at(0.6));
    EXPECT_THAT(s.tick(0.6), ElementsAre("Beat echo 2 floor -1 running -1"));
}

// Where no worker can run, the leader is told before the Join, which might complete a generation;
// and so again over each new connection.
TEST(AgentMachine, IsUnusableFromTheStart) {
    Script s(MachineConfig{.unusable = "no GPU"});
    s.step(0, Started{});
    EXPECT_THAT(s.welcome(0), ElementsAre("Unusable: no GPU", HasSubstr("Join")));
    EXPECT_THAT(s.told(1, rendezvous::Finished{ending(rendezvous::Verdict::unavailable, 2, "b")}),
                ElementsAre("Leave", "exit 2"));
}

// SIGKILL has no effect: it is looked who is left, the leader is told, and the node waits for the
// end of the job. A worker that ends at last changes nothing.
TEST(AgentMachine, IsUnusableWhenAWorkerOutlivesSigkill) {
    Script s;
    s.run();
    s.exits(1, exited(0, 7));
    Lines late;
    for (double now = 1.5; late.empty() && now < 100; now += 0.5) {  // swept when the grace is over
        for (const std::string& line : but_beats(s.tick(now)))
            if (line.starts_with("look")) late.push_back(line);
        s.ack(now);
    }
    ASSERT_THAT(late, ElementsAre("look for stuck after 60.0 s"));
    EXPECT_THAT(s.step(68, CannotKill{Generation{0}, "rank 1 hangs"}),
                Contains("Unusable: rank 1 hangs"));
    EXPECT_THAT(but_beats(s.step(68.1, Swept{Generation{0}})), IsEmpty());
    rendezvous::Ending end = ending(rendezvous::Verdict::worker_failed, 7, "no restart");
    EXPECT_THAT(s.told(68.2, rendezvous::Finished{end}),
                ElementsAre("deadline never", "Leave", "exit 7"));
}

// Whom nobody killed in vain is not looked for.
TEST(AgentMachine, DoesNotLookForWhatWasSwept) {
    Script s;
    s.run();
    s.exits(1, exited(0, 7));
    s.exits(1.1, exited(1, 1));
    s.step(1.2, Swept{Generation{0}});
    for (double now = 2; now < 100; now += 0.5)
        for (const std::string& line : s.tick(now)) EXPECT_FALSE(line.starts_with("look")) << line;
}

// The deadline goes to the keeper before the workers start.
TEST(AgentMachine, StartsWhatItIsAssigned) {
    Script s;
    s.join();
    EXPECT_THAT(s.assigned(0.2, 8), ElementsAre("deadline 8.1 s", "open store", "spawn 0",
                                                "Beat echo 1 floor -1 running 0"));
    EXPECT_THAT(s.assigned(0.3, 8), IsEmpty()) << "said twice";
    EXPECT_THAT(s.ack(0.3, -1, 3, sec(8.5)), ElementsAre("deadline 8.7 s"));
}

// It came too late: vowed and said, so that the others do not wait.
TEST(AgentMachine, RefusesAnAssignmentWhoseDeadlineHasPassed) {
    Script s;
    s.join();
    EXPECT_THAT(s.assigned(0.3, 0.1),
                ElementsAre("note: generation 0 cannot start here: its lease has expired",
                            "Beat echo 1 floor 0 running -1"));
    EXPECT_THAT(s.assigned(0.3, 8), IsEmpty());
}

// No Ack that extends it: all is killed at the deadline, and the vow follows when the keeper has
// verified.
TEST(AgentMachine, PassedDeadlineSweeps) {
    Script s;
    s.run();
    s.ack(5);
    EXPECT_THAT(but_beats(s.tick(8)), IsEmpty());
    EXPECT_EQ(s.next(), at(8.1));
    EXPECT_THAT(s.tick(8.1), ElementsAre(HasSubstr("lease of generation 0 expired"), "sweep 0"));
    EXPECT_THAT(s.exits(8.12, killed(0, 9)), IsEmpty()) << "killed by us: no failure";
    EXPECT_THAT(
        s.step(8.15, Swept{g0}),
        ElementsAre("close store", "deadline never",
                    "Join: Beat echo 2 floor 0 running -1 knows of 0, the lease has expired "
                    "on node a"));
}

TEST(AgentMachine, ReportsAWorkerThatCannotStart) {
    Script s;
    s.run();
    EXPECT_THAT(
        s.step(0.3, WorkerNotStarted{g0, 1, "cannot execute ./train: not found", 127}),
        ElementsAre(
            "Report: rank 1 (local 1 on a) was not started: cannot execute ./train: not found",
            "signal 15"));
}

// Another node has failed: `over` stops the workers here; who dies of that is not reported.
TEST(AgentMachine, OverStopsTheWorkers) {
    Script s;
    s.run();
    EXPECT_THAT(s.ack(0.3, 0), ElementsAre("signal 15"));
    EXPECT_THAT(s.exits(0.4, killed(0, 15)), IsEmpty());
    EXPECT_THAT(s.exits(0.4, killed(1, 15)), ElementsAre("sweep 0"));
    EXPECT_THAT(s.step(0.41, Swept{g0}), ElementsAre("close store", "deadline never",
                                                     "Join: Beat echo 2 floor 0 running -1"));
}

// An idle node vows too, or nobody could go on without it.
TEST(AgentMachine, OverRaisesTheFloorOfAnIdleNode) {
    Script s;
    s.join();
    EXPECT_THAT(s.ack(0.2, 0), ElementsAre("Beat echo 2 floor 0 running -1"));
}

// A new connection's Join says all that is known of the generation, by the node's own workers or by
// the leader; one that comes after another needs it.
TEST(AgentMachine, ANewLeaderHearsWhatIsKnownOfTheGeneration) {
    Script s;
    s.run();
    s.step(0.2, WorkerProgress{g0, 7, -1});
    s.exits(0.3, exited(1, 3));
    s.exits(0.4, killed(0, 15));
    EXPECT_THAT(s.step(0.5, Swept{g0}),
                Contains("Join: Beat echo 1 floor 0 running -1 knows of 0, progressed"))
        << "the failure was told to this leader";
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

// All workers are done here: the node stays a member, with its lease, until the leader says that it
// is over.
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

// Calls again while the link is lost, and gives up after two leases.
TEST(AgentMachine, LinkLostForTwoLeasesIsUnavailable) {
    Script s;
    s.join();
    EXPECT_THAT(s.step(1, LinkLost{"reset"}),
                ElementsAre("note: the link to the rendezvous is lost: reset; reconnecting",
                            "connect until 21.0 s"));
    EXPECT_THAT(s.step(20, LinkLost{"no route"}), ElementsAre("connect until 21.0 s"));
    EXPECT_THAT(s.step(21, LinkLost{"no route"}), ElementsAre("exit 69"));
}

TEST(AgentMachine, SilentLeaderIsTakenForLost) {
    Script s;
    s.join();
    EXPECT_THAT(but_beats(s.tick(6)), IsEmpty());
    EXPECT_THAT(s.tick(6.1), ElementsAre(HasSubstr("no answer for 6.0 s"), "connect until 26.1 s"));
}

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

// By what it says a leader knows a node whose own job has ended while it was away.
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

// A rendezvous that has begun anew does not know what runs here: the workers are stopped, and
// nobody is called meanwhile.
TEST(AgentMachine, RefusedWhileWorkersRunStopsThem) {
    Script s;
    s.run();
    EXPECT_THAT(s.told(0.3, rendezvous::Refused{"another ledger"}), Contains("signal 15"));
    EXPECT_THAT(s.step(0.4, LinkLost{"it has ended the connection"}), IsEmpty());
    s.exits(0.5, exited(0, 0));
    s.exits(0.5, exited(1, 0));
    EXPECT_THAT(s.step(0.6, Swept{Generation{0}}), Contains("exit 69"));
}

// The keeper's death takes the workers with it; until another is there nothing starts.
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

// The first progress is said at once, for a failure may follow on its heels.
TEST(AgentMachine, FirstProgressIsSaidAtOnce) {
    Script s;
    s.run();
    EXPECT_THAT(s.step(0.3, WorkerProgress{g0, 5, -1}),
                ElementsAre(HasSubstr("Beat echo 1 floor -1 running 0 progressed")));
    EXPECT_THAT(s.step(0.31, WorkerProgress{g0, 6, -1}), IsEmpty());
}

// Each beat says how many reports there were, how long ago the newest came, and who is how far;
// who has ended is not waited for.
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

// What a restart consists of on this node, and for how long it is past: of the generation that
// runs, and after that of its end.
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
    s.ack(2, 0);
    s.exits(2.2, killed(0, 15));
    s.exits(2.4, killed(1, 15));
    s.step(2.5, Swept{g0});
    EXPECT_THAT(s.marks(3), ElementsAre("1.0 s told", "0.6 s stopped", "0.5 s gone"));
}

// The leader asks where its slowest are; the answer goes out as a report, whoever else is named is
// not ours, and after the stop has begun there is nothing to look at.
TEST(AgentMachine, ExaminesItsOwnWorkersWhileTheyRun) {
    Script s;
    s.run();
    EXPECT_THAT(s.told(0.3, rendezvous::Examine{g0, {1, 3}}), ElementsAre("examine 1"));
    rendezvous::WorkerOutcome seen;
    seen.local_rank = 1;
    EXPECT_THAT(s.step(0.4, WorkersExamined{g0, {seen}}), ElementsAre("Report hung 1"));
    EXPECT_THAT(s.told(0.4, rendezvous::Examine{Generation{1}, {1}}), IsEmpty());
    s.ack(0.5, 0);
    EXPECT_THAT(s.told(0.6, rendezvous::Examine{g0, {1}}), IsEmpty());
}

// A job of one node has no regular beats: with a hang timeout its progress is told all the same,
// but not every report by itself.
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
        EXPECT_THAT(step(1, WorkerProgress{g0, 1, -1}),
                    ElementsAre(HasSubstr("progressed reports 1 0 ms ago 0@1")));
        step(1.2, WorkerProgress{g0, 2, -1});
        step(1.4, WorkerProgress{g0, 3, -1});
        EXPECT_EQ(machine.next_deadline(), hangs ? at(1.5) : kNever);
        if (!hangs) continue;
        EXPECT_THAT(step(1.5, Tick{}), ElementsAre(HasSubstr("reports 3 0.1 s ago 0@3")));
        EXPECT_EQ(machine.next_deadline(), kNever);
    }
}

// ---- succession: node b; a leads, c stands behind b

}  // namespace
}  // namespace ddprun::agent
