// The agent machine when the job stops (rendezvous/PROTOCOL.md, rule 23): signals, the end of the
// job's time, and deaths by a signal that nobody here has sent. The lease is 10 s.
#include "tests/agent/machine/machine_script.h"

namespace ddprun::agent {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Worker 0 fails. The other one gets SIGTERM, since its collectives cannot end any more, and
// SIGKILL after a grace of 5 s. It ignores SIGTERM here.
TEST(AgentMachine, StopsByTermThenKill) {
    Script s;
    s.run();
    EXPECT_THAT(s.exits(0.3, exited(0, 3)),
                ElementsAre("Report: rank 0 exited with 3", "signal 15"));
    // This Ack keeps the leader from counting as lost.
    s.ack(4);
    EXPECT_THAT(but_beats(s.tick(5.2)), IsEmpty());
    EXPECT_THAT(but_beats(s.tick(5.3)), ElementsAre("sweep 0"));
    EXPECT_THAT(s.exits(5.31, killed(1, 9)), IsEmpty());
    EXPECT_THAT(s.step(5.32, Swept{g0}), ElementsAre("close store", "deadline never",
                                                     "Join: Beat echo 2 floor 0 running -1"));
}

// The other worker's handler calls a collective, which cannot end.
TEST(AgentMachine, WorkersThatWaitForADeadOneAreKilledSooner) {
    Script s;
    s.run();
    EXPECT_THAT(s.step(0.2, WorkersInCollectives{g0}), IsEmpty()) << "they train";
    s.exits(0.3, exited(0, 3));
    s.ack(4);
    EXPECT_THAT(s.step(0.8, WorkersInCollectives{g0}), IsEmpty()) << "it has just got the signal";
    EXPECT_THAT(s.step(1.4, WorkersInCollectives{Generation{1}}), IsEmpty());
    EXPECT_THAT(but_beats(s.step(1.5, WorkersInCollectives{g0})), Contains("sweep 0"));
}

// The same where the generation has ended because a node is lost, but not where an operator has
// ended it: then all are there, and may finish.
TEST(AgentMachine, WorkersThatWaitForALostNodeAreKilledSooner) {
    for (const bool lost : {true, false}) {
        Script s;
        s.run();
        rendezvous::Facts facts{.generation = g0};
        facts.interruption = rendezvous::Interruption{lost ? "n2" : "", "why it ended", lost};
        s.ack(0.5, 0, 0, {}, facts);
        EXPECT_THAT(but_beats(s.step(0.9, WorkersInCollectives{g0})), IsEmpty());
        EXPECT_THAT(but_beats(s.step(1.6, WorkersInCollectives{g0})),
                    lost ? testing::Matcher<Lines>(Contains("sweep 0")) : IsEmpty());
    }
}

// In a stop that somebody has asked for nobody is dead: such a collective may end, and a snapshot
// follow.
TEST(AgentMachine, WorkersInACollectiveHaveTheWholeTimeOfAnAgreedStop) {
    Script s;
    s.run();
    s.told(1, rendezvous::Stop{g0, 15, "signal 15 on node b"});
    for (const double at : {1.5, 2.5, 3.5})
        EXPECT_THAT(but_beats(s.step(at, WorkersInCollectives{g0})), IsEmpty());
}

// All workers have succeeded, and the sweep waits for what they have left running. A stop, the end
// of the generation and a second Ctrl-C shorten the wait.
TEST(AgentMachine, AStopShortensTheWaitForWhatIsLeftRunning) {
    MachineConfig config;
    config.grace.helpers = std::chrono::hours{1};
    config.at_terminal = true;
    Script s(config);
    s.run();
    s.exits(0.3, exited(0, 0));
    EXPECT_THAT(s.exits(0.3, exited(1, 0)), ElementsAre("sweep 0"));
    EXPECT_THAT(but_beats(s.told(1, rendezvous::Stop{g0, 2, "signal 2 on node b"})),
                Contains("hurry 30.0 s"));
    s.step(1.1, SignalCame{2});
    EXPECT_THAT(s.step(1.2, SignalCame{2}), Contains("hurry 0 ms"));
    EXPECT_THAT(s.step(1.4, Swept{g0}), ElementsAre("Beat echo 1 floor -1 running 0 complete"));

    Script other(config);
    other.run();
    other.exits(0.3, exited(0, 0));
    other.exits(0.3, exited(1, 0));
    EXPECT_THAT(other.ack(1, 0), Contains("hurry 5.0 s"));
    EXPECT_THAT(other.step(1.4, Swept{g0}), Contains("close store"));
}

// Slurm signals workers and ddprun in any order. A worker dies of SIGTERM first, and the Stop comes
// 0.9 s later. Then the death was part of the stop: no failure, no restart.
TEST(AgentMachine, DeathBySlurmsSignalWaitsForTheStop) {
    MachineConfig config;
    config.stop.in_slurm = true;
    // With and without a second worker that dies meanwhile.
    for (const bool all : {false, true}) {
        Script s(config);
        s.run();
        EXPECT_THAT(s.exits(0.3, killed(0, 15)), IsEmpty());
        if (all) {
            EXPECT_THAT(s.exits(0.4, exited(1, 1)), IsEmpty()) << "a consequence";
        }
        const Lines told = s.told(1.2, rendezvous::Stop{g0, 15, "signal 15 on node b"});
        EXPECT_THAT(told, Contains("signal 15"));
        EXPECT_EQ(std::ranges::count(told, "sweep 0"), all ? 1 : 0);
        if (!all) {
            EXPECT_THAT(s.exits(1.3, exited(1, 0)), ElementsAre("sweep 0"));
        }
        EXPECT_THAT(s.step(1.4, Swept{g0}), ElementsAre("Beat echo 1 floor -1 running 0 complete"));
    }
}

// Slurm has sent a signal of --requeue-signal to the workers as well, and they died of it. They
// would have had a SIGTERM and time.
TEST(AgentMachine, WorkersThatDieOfTheNamedSignalAreToldOf) {
    MachineConfig config;
    config.stop.in_slurm = true;
    config.stop.requeue_signals = {10};
    rendezvous::Stop stop{g0, 10, "SIGUSR1 (--requeue-signal) on node b"};
    stop.cause = rendezvous::StopCause::named_signal;
    const auto warning = HasSubstr("of 2 workers of this node died of SIGUSR1 before they could");
    for (const bool before : {true, false}) {
        Script s(config);
        s.run();
        if (before) s.exits(0.3, killed(0, 10));
        EXPECT_THAT(s.told(0.5, stop), Not(Contains(warning)));
        if (!before) s.exits(0.6, killed(0, 10));
        EXPECT_THAT(s.exits(1.3, exited(1, 0)),
                    Contains(testing::AllOf(testing::StartsWith("note: 1 of 2"), warning)));
    }
    // Those of --stop-signal, and of a program that has saved, are nobody's fault.
    config.stop.worker_signal = 10;
    Script named(config);
    named.run();
    named.told(0.5, stop);
    named.exits(0.6, killed(0, 10));
    EXPECT_THAT(named.exits(0.6, killed(1, 10)), ElementsAre("sweep 0"));
    config.stop.worker_signal.reset();
    Script saved(config);
    saved.run();
    saved.told(0.5, stop);
    saved.exits(0.6, killed(0, 15));
    EXPECT_THAT(saved.exits(0.6, exited(1, 0)), ElementsAre("sweep 0"));
}

// The same death, but no stop comes within 1 s: then somebody killed the worker, and it was a
// failure. If another node's failure ends the generation, there is no stop to wait for. SIGSEGV is
// never Slurm's.
TEST(AgentMachine, Rule23g_DeathBySlurmsSignalIsJudgedAfterASecond) {
    MachineConfig config;
    config.stop.in_slurm = true;
    Script alone(config);
    alone.run();
    alone.exits(0.3, killed(0, 1));
    EXPECT_THAT(alone.tick(1.2), testing::Not(Contains(HasSubstr("Report"))));
    EXPECT_THAT(alone.tick(1.31),
                testing::IsSupersetOf({"Report: rank 0 was killed by signal 1", "signal 15"}));
    Script others(config);
    others.run();
    others.exits(0.3, killed(0, 1));
    EXPECT_THAT(others.ack(0.4, 0),
                testing::IsSupersetOf({"Report: rank 0 was killed by signal 1", "signal 15"}));
    Script bug(config);
    bug.run();
    EXPECT_THAT(bug.exits(0.3, killed(0, 11)), Contains("signal 15")) << "never Slurm's";
}

// The job's time ends at 62, and the workers need 60 s for a snapshot. So the node asks for a stop
// at 2. Of the 60 s that are left, 10 s are kept for the kill and the record of the end. A user's
// scancel counts even then.
TEST(AgentMachine, TheEndOfTheJobsTimeIsSeenComing) {
    MachineConfig config;
    config.stop.requeue = RequeueMode::automatic;
    config.stop.requeue_signals = {10};
    config.stop.before = sec(60);
    config.stop.job_end = at(62);
    Script s(config);
    s.run();
    EXPECT_THAT(s.tick(1.9), testing::Not(Contains(HasSubstr("StopAsked"))));
    EXPECT_THAT(s.tick(2), Contains("StopAsked 0 time_limit 60.0 s left to requeue"));
    EXPECT_THAT(s.step(2.1, SignalCame{10}), testing::Not(Contains(HasSubstr("StopAsked"))))
        << "the first one counts";
    rendezvous::Stop stop{g0, 0, "stopped"};
    stop.cause = rendezvous::StopCause::time_limit;
    stop.left = sec(60);
    EXPECT_THAT(s.told(2.2, stop), Contains("signal 15, time_limit, 50.0 s"));
    EXPECT_THAT(s.step(2.3, SignalCame{15}), Contains(HasSubstr("StopAsked 15"))) << "scancel";
}

// The leader answers a signal with a Stop to all nodes. With an answer the node waits for the end,
// however long the workers take. Without one within 1 L (10.3) it stops alone: otherwise Slurm
// would kill it.
TEST(AgentMachine, AStopIsAnsweredByTheLeader) {
    MachineConfig config;
    config.stop.requeue_signals = {10};
    for (const bool answered : {true, false}) {
        Script s(config);
        s.run();
        EXPECT_THAT(s.step(0.3, SignalCame{10}), Contains("StopAsked 10 named_signal"));
        rendezvous::Stop stop{g0, 10, "stopped"};
        stop.cause = rendezvous::StopCause::named_signal;
        if (answered) s.told(0.4, stop);
        s.exits(1, killed(0, 15));
        s.exits(1, killed(1, 15));
        s.step(1, Swept{g0});
        // The leader lives in both cases, so only the missing Stop makes the node leave.
        for (double now = 1.5; now < 11; now += 0.5) s.ack(now, 0);
        EXPECT_EQ(s.snapshot().phase, answered ? Phase::joining : Phase::finished);
    }
}

// No variable gives the time limit, and Slurm's answer comes later: 3 s are left. In a short job
// half of that is for training, so the stop is due at 2.5.
TEST(AgentMachine, AnEndThatIsToldLaterCountsToo) {
    Script s;
    s.run();
    EXPECT_THAT(s.step(1, JobEndKnown{}), testing::Not(Contains(HasSubstr("Stop"))));
    s.step(1, JobEndKnown{at(4)});
    EXPECT_THAT(s.tick(2.4), testing::Not(Contains(HasSubstr("StopAsked"))));
    EXPECT_THAT(s.tick(2.5), Contains(HasSubstr("StopAsked 0 time_limit")));
}

// The job has an hour, but the step has 20 s, which is told later. Half of them are for
// training, so the stop is due at 10.
TEST(AgentMachine, ANearerEndThatIsToldLaterCountsToo) {
    MachineConfig config;
    config.stop.first_left = sec(3600);
    config.stop.job_end = at(3600);
    Script s(config);
    s.run();
    EXPECT_THAT(s.step(1, JobEndKnown{at(20)}), testing::Not(Contains(HasSubstr("StopAsked"))));
    EXPECT_THAT(s.tick(9.9), testing::Not(Contains(HasSubstr("StopAsked"))));
    EXPECT_THAT(s.tick(10), Contains(HasSubstr("StopAsked 0 time_limit")));
}

// The user presses Ctrl-C on one node. The node asks the leader, and the Stop comes back to all
// nodes. All of them end with the same code, and the node stays a member until all have stopped.
TEST(AgentMachine, UserSignalGoesByTheLeader) {
    Script s;
    s.run();
    EXPECT_THAT(s.step(0.25, SignalCame{2}), ElementsAre("StopAsked 2"));
    EXPECT_THAT(s.step(0.26, SignalCame{2}), IsEmpty());
    EXPECT_THAT(s.told(0.3, rendezvous::Stop{g0, 2, "signal 2 on node a"}),
                ElementsAre("note: stopping: signal 2 on node a; the workers have 30.0 s to end",
                            "signal 2"));
    s.exits(0.4, killed(0, 2));
    s.exits(0.4, killed(1, 2));
    EXPECT_THAT(s.step(0.41, Swept{g0}), ElementsAre("Beat echo 1 floor -1 running 0 complete"))
        << "still a member until all have stopped";
    s.ack(0.5, 0);
    EXPECT_THAT(
        s.told(0.6, rendezvous::Finished{ending(rendezvous::Verdict::user_signal, 130, "stopped")}),
        ElementsAre("Leave", "exit 130"));
}

// Signals that stop nothing unless the user names them, such as Slurm's warning USR1. They are the
// workers' business, so they go to the workers of this node.
TEST(AgentMachine, PassesOnWhatIsTheWorkersBusiness) {
    Script s({.passed_on = {10, 12}});
    EXPECT_THAT(s.step(0, SignalCame{10}),
                ElementsAre("note: SIGUSR1 is ignored: no worker runs on this node"));
    s.run();
    EXPECT_THAT(
        s.step(0.3, SignalCame{12}),
        ElementsAre("note: SIGUSR2 is passed on to the workers of this node", "pass on 12"));
    EXPECT_EQ(s.snapshot().phase, Phase::running);
    EXPECT_THAT(s.step(0.4, SignalCame{15}), ElementsAre("StopAsked 15")) << "others still stop";
}

// A second Ctrl-C at a terminal means: do not wait for the snapshot. Without a terminal it means
// nothing, because Slurm repeats its signals.
TEST(AgentMachine, SecondInterruptKillsAtATerminalOnly) {
    for (const bool at_terminal : {false, true}) {
        Script s({.at_terminal = at_terminal});
        s.run();
        s.step(0.25, SignalCame{2});
        const Lines stopping = s.told(0.3, rendezvous::Stop{g0, 2, "signal 2"});
        EXPECT_EQ(stopping.at(0),
                  std::string("note: stopping: signal 2; the workers have 30.0 s to end") +
                      (at_terminal ? "; another Ctrl-C kills them at once" : ""));
        EXPECT_THAT(s.step(0.4, SignalCame{15}), IsEmpty()) << "Slurm says it twice";
        const Lines second = s.step(0.5, SignalCame{2});
        if (at_terminal)
            EXPECT_THAT(second,
                        ElementsAre("note: interrupted again: killing the workers", "sweep 0"));
        else
            EXPECT_THAT(second, IsEmpty());
        EXPECT_THAT(s.step(0.6, SignalCame{2}), IsEmpty());
    }
}

// No leader is found yet, so there is nobody to agree with and no worker to wait for.
TEST(AgentMachine, UserSignalWithoutALeaderEndsAtOnce) {
    Script s;
    s.step(0, Started{});
    EXPECT_THAT(s.step(1, SignalCame{15}), ElementsAre("exit 143"));
}

}  // namespace
}  // namespace ddprun::agent
