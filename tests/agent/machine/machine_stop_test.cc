// A stop of the job as one node sees it: signals, the end of the job's time, deaths by a signal that
// nobody here has sent.
#include "tests/agent/machine/machine_script.h"

namespace ddprun::agent {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A worker fails: reported at once, the other is asked to stop, and killed when its grace is over.
TEST(AgentMachine, StopsByTermThenKill) {
    Script s;
    s.run();
    EXPECT_THAT(s.exits(0.3, exited(0, 3)),
                ElementsAre("Report: rank 0 exited with 3", "signal 15"));
    s.ack(4);
    EXPECT_THAT(but_beats(s.tick(5.2)), IsEmpty());
    EXPECT_THAT(but_beats(s.tick(5.3)), ElementsAre("sweep 0"));
    EXPECT_THAT(s.exits(5.31, killed(1, 9)), IsEmpty());
    EXPECT_THAT(s.step(5.32, Swept{g0}), ElementsAre("close store", "deadline never",
                                                     "Join: Beat echo 2 floor 0 running -1"));
}

// Slurm signals workers and ddprun in any order: who dies of it first has not failed.
TEST(AgentMachine, DeathBySlurmsSignalWaitsForTheStop) {
    MachineConfig config;
    config.stop.in_slurm = true;
    for (const bool all : {false, true}) {
        Script s(config);
        s.run();
        EXPECT_THAT(s.exits(0.3, killed(0, 15)), IsEmpty());
        if (all) {
            EXPECT_THAT(s.exits(0.4, exited(1, 1)), IsEmpty()) << "a consequence";
        }
        const Lines told = s.told(1.2, rendezvous::Stop{g0, 15, "stopped: signal 15 on node b"});
        EXPECT_THAT(told, Contains("signal 15"));
        EXPECT_EQ(std::ranges::count(told, "sweep 0"), all ? 1 : 0);
        if (!all) {
            EXPECT_THAT(s.exits(1.3, exited(1, 0)), ElementsAre("sweep 0"));
        }
        EXPECT_THAT(s.step(1.4, Swept{g0}), ElementsAre("Beat echo 1 floor -1 running 0 complete"));
    }
}

// No stop comes within a second, or another node's failure is told: then it was a failure.
TEST(AgentMachine, DeathBySlurmsSignalIsJudgedAfterASecond) {
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

// All nodes stop together, early enough for a last snapshot; scancel is heard even then.
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

// The leader's Stop is the answer, however long the workers take; without one the node leaves alone.
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
        for (double now = 1.5; now < 11; now += 0.5) s.ack(now, 0);
        EXPECT_EQ(s.snapshot().phase, answered ? Phase::joining : Phase::finished);
    }
}

// Told by Slurm later: half of what was left then is the workers'.
TEST(AgentMachine, AnEndThatIsToldLaterCountsToo) {
    Script s;
    s.run();
    EXPECT_THAT(s.step(1, JobEndKnown{}), testing::Not(Contains(HasSubstr("Stop"))));
    s.step(1, JobEndKnown{at(4)});
    EXPECT_THAT(s.tick(2.4), testing::Not(Contains(HasSubstr("StopAsked"))));
    EXPECT_THAT(s.tick(2.5), Contains(HasSubstr("StopAsked 0 time_limit")));
}

// Ctrl-C here: the leader is told, and its Stop comes back to all; each ends with the job's code.
TEST(AgentMachine, UserSignalGoesByTheLeader) {
    Script s;
    s.run();
    EXPECT_THAT(s.step(0.25, SignalCame{2}), ElementsAre("StopAsked 2"));
    EXPECT_THAT(s.step(0.26, SignalCame{2}), IsEmpty());
    EXPECT_THAT(s.told(0.3, rendezvous::Stop{g0, 2, "stopped: signal 2 on node a"}),
                ElementsAre("note: stopped: signal 2 on node a; stopping the workers within 30.0 s",
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

// Slurm's warning signals: the workers' business, nobody is told and nothing stops.
TEST(AgentMachine, PassesOnWhatIsTheWorkersBusiness) {
    Script s({.passed_on = {10, 12}});
    EXPECT_THAT(s.step(0, SignalCame{10}),
                ElementsAre("note: signal 10 is ignored: no worker runs on this node"));
    s.run();
    EXPECT_THAT(
        s.step(0.3, SignalCame{12}),
        ElementsAre("note: signal 12 is passed on to the workers of this node", "signal 12"));
    EXPECT_EQ(s.snapshot().phase, Phase::running);
    EXPECT_THAT(s.step(0.4, SignalCame{15}), ElementsAre("StopAsked 15")) << "others still stop";
}

TEST(AgentMachine, SecondInterruptKillsAtATerminalOnly) {
    for (const bool at_terminal : {false, true}) {
        Script s({.at_terminal = at_terminal});
        s.run();
        s.step(0.25, SignalCame{2});
        s.told(0.3, rendezvous::Stop{g0, 2, "stopped"});
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

TEST(AgentMachine, UserSignalWithoutALeaderEndsAtOnce) {
    Script s;
    s.step(0, Started{});
    EXPECT_THAT(s.step(1, SignalCame{15}), ElementsAre("exit 143"));
}

}  // namespace
}  // namespace ddprun::agent
