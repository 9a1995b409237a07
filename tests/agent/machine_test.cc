// The agent machine as scripts: events in, effects out, one effect a line.
#include "agent/machine.h"

#include <gmock/gmock.h>

#include "tests/support/builders.h"

using namespace ddprun;
using namespace ddprun::agent;
using namespace ddprun::test;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

using Lines = std::vector<std::string>;
constexpr Generation g0{0};

// The place of the first of two nodes.
rendezvous::NodePlace first_of_two(std::int64_t generation, int slots = 1) {
    rendezvous::NodePlace place;
    place.generation = Generation{generation};
    place.nodes = 2;
    place.slots = slots;
    place.world_size = 2 * slots;
    return place;
}

std::string text(Time time) { return time == kNever ? "never" : to_text(time.time_since_epoch()); }

// What a Beat says of progress: how many reports, how long ago, and who is how far.
std::string reports(const rendezvous::Beat& beat) {
    if (beat.reports == 0) return {};
    std::string text =
        " reports " + std::to_string(beat.reports) + " " + to_text(beat.reported) + " ago";
    for (const auto& [rank, step] : beat.slowest)
        text += " " + std::to_string(rank) + "@" + std::to_string(step);
    return text;
}

std::string describe(const rendezvous::ToLeader& message) {
    if (const auto* m = std::get_if<rendezvous::Join>(&message))
        return "Join: " + describe(rendezvous::ToLeader(m->beat));
    if (const auto* m = std::get_if<rendezvous::Beat>(&message))
        return "Beat echo " + std::to_string(m->echo) + " floor " + std::to_string(m->floor.value) +
               " running " + std::to_string(m->running.value) +
               (m->progressed ? " progressed" : "") + reports(*m);
    if (const auto* m = std::get_if<rendezvous::Report>(&message)) {
        std::string all = m->complete ? "Report complete" : "Report";
        for (const auto& outcome : m->outcomes)
            all += outcome.hung ? " hung " + std::to_string(outcome.rank) : ": " + outcome.sentence;
        return all;
    }
    if (const auto* m = std::get_if<rendezvous::StopAsked>(&message))
        return "StopAsked " + std::to_string(m->signal) +
               (m->cause == rendezvous::StopCause::signal
                    ? ""
                    : std::string(" ") + to_string(m->cause)) +
               (m->left ? " " + to_text(*m->left) + " left" : "") +
               (m->requeue ? " to requeue" : "");
    if (const auto* m = std::get_if<rendezvous::Unusable>(&message))
        return "Unusable: " + m->reason;
    return std::get_if<rendezvous::Leave>(&message) ? "Leave" : "other";
}

std::string describe(const Effect& effect) {
    if (const auto* e = std::get_if<Connect>(&effect))
        return "connect " +
               (e->self              ? "self "
                : e->address.empty() ? ""
                                     : e->address + " ") +
               (e->once ? "once " : "") + "until " + text(e->deadline);
    if (std::get_if<Lead>(&effect)) return "lead";
    if (const auto* e = std::get_if<LeaderHeard>(&effect)) return "heard " + e->leader.node.name;
    if (const auto* e = std::get_if<SendMessage>(&effect)) return describe(e->message);
    if (const auto* e = std::get_if<SetDeadline>(&effect)) return "deadline " + text(e->deadline);
    if (std::get_if<OpenStore>(&effect)) return "open store";
    if (const auto* e = std::get_if<Spawn>(&effect))
        return "spawn " + std::to_string(e->place.generation.value);
    if (const auto* e = std::get_if<SignalWorkers>(&effect))
        return "signal " + std::to_string(e->signal) +
               (e->hint && e->hint->cause != rendezvous::StopCause::signal
                    ? std::string(", ") + to_string(e->hint->cause) + ", " + to_text(e->hint->grace)
                    : "");
    if (const auto* e = std::get_if<ExamineWorkers>(&effect)) {
        std::string all = "examine";
        for (const int local_rank : e->local_ranks) all += " " + std::to_string(local_rank);
        return all;
    }
    if (const auto* e = std::get_if<Sweep>(&effect))
        return "sweep " + std::to_string(e->generation.value);
    if (const auto* e = std::get_if<LookForStuck>(&effect))
        return "look for stuck after " + to_text(e->since);
    if (std::get_if<AskJobEnd>(&effect)) return "when does the job end?";
    if (std::get_if<CloseStore>(&effect)) return "close store";
    if (const auto* e = std::get_if<Exit>(&effect)) return "exit " + std::to_string(e->ending.code);
    return "note: " + std::get<Note>(effect).sentence;
}

// Node a of a job of two, with two workers.
class Script {
  public:
    explicit Script(MachineConfig config = {}) : machine_(of_job(std::move(config)), at(0)) {}

    Lines step(double now, const Event& event) {
        Lines all;
        for (const Effect& effect : machine_.step(at(now), event)) all.push_back(describe(effect));
        return all;
    }
    Lines told(double now, const rendezvous::ToNode& message) {
        return step(now, MessageCame{message});
    }
    Lines tick(double now) { return step(now, Tick{}); }
    Lines welcome(double now) {
        return told(now, rendezvous::Welcome{node("leader"), {}, {}, 2, {}, "", 0});
    }
    // The newest Ack; `over` tells what has ended, `remaining` what is granted from the sending of
    // that Beat.
    Lines ack(double now, int over = -1, std::int64_t beat = 0,
              std::optional<Duration> remaining = {}) {
        rendezvous::Ack ack;
        ack.number = ++acks_;
        ack.beat = beat;
        ack.entry = machine_.snapshot().seen;
        ack.held = machine_.snapshot().running;
        ack.remaining = remaining;
        ack.over = Generation{over};
        return told(now, ack);
    }
    Lines assigned(double now, double remaining, std::int64_t beat = 2) {
        return told(now,
                    rendezvous::Assigned{EntryNumber{0}, first_of_two(0, 2), beat, sec(remaining)});
    }
    Lines exits(double now, const rendezvous::WorkerOutcome& outcome) {
        return step(now, WorkerExited{g0, outcome, at(now)});
    }
    // Welcomed at 0, Ack 1 at 0.1 echoed by Beat 2.
    void join() {
        step(0, Started{});
        welcome(0);
        ack(0.1);
    }
    // … and runs generation 0 since 0.2 until 8.1: granted 8 s from Beat 2.
    void run() {
        join();
        assigned(0.2, 8);
    }
    // Those of the beat that is due at that time.
    Lines marks(double now) {
        Lines all;
        for (const Effect& effect : machine_.step(at(now), Tick{})) {
            const auto* sent = std::get_if<SendMessage>(&effect);
            const auto* beat = sent ? std::get_if<rendezvous::Beat>(&sent->message) : nullptr;
            if (!beat) continue;
            EXPECT_EQ(beat->marks.generation, g0);
            for (const rendezvous::Mark& mark : beat->marks.passed)
                all.push_back(to_text(mark.ago) + " " + to_string(mark.phase));
        }
        return all;
    }
    Snapshot snapshot() const { return machine_.snapshot(); }
    Time next() const { return machine_.next_deadline(); }

  private:
    static MachineConfig of_job(MachineConfig config) {
        config.run_id = "job";
        config.node = node("a");
        config.offer = offer(2);
        config.version = "1";
        return config;
    }

    Machine machine_;
    std::int64_t acks_ = 0;
};

// Without the regular beats, for what takes longer than their period.
Lines but_beats(Lines lines) {
    std::erase_if(lines, [](const std::string& line) { return line.starts_with("Beat"); });
    return lines;
}

}  // namespace

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
                ElementsAre("note: generation 0 cannot start here: its lease has passed",
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
    EXPECT_THAT(s.tick(8.1), ElementsAre(HasSubstr("lease of generation 0 has passed"), "sweep 0"));
    EXPECT_THAT(s.exits(8.12, killed(0, 9)), IsEmpty()) << "killed by us: no failure";
    EXPECT_THAT(s.step(8.15, Swept{g0}), ElementsAre("close store", "deadline never",
                                                     "Join: Beat echo 2 floor 0 running -1"));
}

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

// All workers are done here: the node stays a member, with its lease, until the leader says that it
// is over.
TEST(AgentMachine, WaitsUntilTheGenerationIsOver) {
    Script s;
    s.run();
    EXPECT_THAT(s.exits(0.3, exited(0, 0)), IsEmpty());
    EXPECT_THAT(s.exits(0.3, exited(1, 0)), ElementsAre("sweep 0"));
    EXPECT_THAT(s.step(0.4, Swept{g0}), ElementsAre("Report complete"));
    EXPECT_EQ(s.snapshot().phase, Phase::waiting);
    EXPECT_EQ(s.snapshot().running, g0);
    EXPECT_THAT(s.ack(0.5, 0), ElementsAre("close store", "deadline never",
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
        EXPECT_THAT(s.step(1.4, Swept{g0}), ElementsAre("Report complete"));
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
    EXPECT_THAT(
        s.told(0.3, rendezvous::Stop{g0, 2, "stopped: signal 2 on node a"}),
        ElementsAre("note: stopped: signal 2 on node a; stopping the workers, which have 30.0 s",
                    "signal 2"));
    s.exits(0.4, killed(0, 2));
    s.exits(0.4, killed(1, 2));
    EXPECT_THAT(s.step(0.41, Swept{g0}), ElementsAre("Report complete"))
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
                ElementsAre("note: signal 10 came while no worker runs here; nobody gets it"));
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
                        ElementsAre("note: interrupted again: the workers are killed", "sweep 0"));
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

// Calls again while the link is lost, and gives up after two leases.
TEST(AgentMachine, LinkLostForTwoLeasesIsUnavailable) {
    Script s;
    s.join();
    EXPECT_THAT(s.step(1, LinkLost{"reset"}),
                ElementsAre("note: the link to the rendezvous is lost: reset; calling again",
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
                            "Join: Beat echo 1 floor 0 running -1"));
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

namespace {

rendezvous::Peer peer(const std::string& name) { return {node(name), "at " + name, 1}; }

class Follower {
  public:
    Follower()
        : machine_({.run_id = "job",
                    .node = node("b"),
                    .offer = offer(1),
                    .requeue = 0,
                    .version = "1",
                    .may_lead = true},
                   at(0)) {
        step(0, Started{});
        told(0, rendezvous::Welcome{
                    node("a", 77), {}, {peer("a"), peer("b"), peer("c")}, 3, peer("a"), {}});
    }
    Lines step(double now, const Event& event) {
        Lines all;
        for (const Effect& effect : machine_.step(at(now), event)) all.push_back(describe(effect));
        return but_beats(all);
    }
    Lines told(double now, const rendezvous::ToNode& message) {
        return step(now, MessageCame{message});
    }
    Lines holds(double now) {
        rendezvous::Ack ack;
        ack.number = ++acks_;
        ack.entry = EntryNumber{3};
        ack.held = g0;
        return told(now, ack);
    }

  private:
    Machine machine_;
    std::int64_t acks_ = 0;
};

}  // namespace

// It has found the ledger that its leader named: it may lead, even before there is a generation.
TEST(Succession, CallsTheLostLeaderThenLeads) {
    Follower b;
    EXPECT_THAT(b.step(0, LedgerFound{true}), ElementsAre(HasSubstr("can take over")));
    EXPECT_THAT(b.step(0, LedgerFound{true}), IsEmpty()) << "said once";
    EXPECT_THAT(b.step(3, LinkLost{"reset"}), ElementsAre(HasSubstr("is lost: reset"), "heard ",
                                                          "connect at a once until 4.5 s"));
    EXPECT_THAT(
        b.step(3.1, LinkLost{"refused"}),
        ElementsAre(HasSubstr("this node leads now"), "lead", "connect self once until 4.6 s"));
}

// The order that comes with a place is the newest: members that were lost stand in it no more.
TEST(Succession, KnowsTheOrderThatCameWithItsPlace) {
    Follower b;
    b.holds(1);
    b.step(2, LedgerFound{true});
    rendezvous::NodePlace second = first_of_two(0);
    second.node_rank = second.rank_offset = 1;
    b.told(2, rendezvous::Assigned{EntryNumber{3}, second, 1, sec(8), {peer("d"), peer("b")}});
    b.step(3, LinkLost{"reset"});
    EXPECT_THAT(b.step(3.1, LinkLost{"refused"}), ElementsAre("connect at d once until 4.6 s"));
    EXPECT_THAT(
        b.step(3.2, LinkLost{"refused"}),
        ElementsAre(HasSubstr("this node leads now"), "lead", "connect self once until 4.7 s"));
}

// An order that has become void: nobody leads after this leader, which may only come back.
TEST(Succession, EndsWhenTheOrderIsVoid) {
    Follower b;
    b.holds(1);
    b.step(2, LedgerFound{true});
    EXPECT_THAT(b.told(2, rendezvous::Parked{}), IsEmpty());
    EXPECT_THAT(b.step(3, LinkLost{"reset"}),
                ElementsAre(HasSubstr("is lost: reset"), "connect until 23.0 s"));
    EXPECT_EQ(b.step(23, LinkLost{"nobody"}).back(), "exit 69");
}

// Without the ledger it only follows; and whom it is sent to, it calls.
TEST(Succession, FollowsWhereItMayNotLead) {
    Follower b;
    EXPECT_THAT(b.step(3, LinkLost{"reset"}), ElementsAre(HasSubstr("is lost: reset"), "heard ",
                                                          "connect at a once until 4.5 s"));
    EXPECT_THAT(b.step(3.1, LinkLost{"refused"}), ElementsAre("connect at c once until 4.6 s"));
    EXPECT_THAT(b.told(3.2, rendezvous::Elsewhere{"at d", 1, {}}),
                ElementsAre("connect at d once until 4.7 s"));
    EXPECT_THAT(b.told(3.3, rendezvous::Elsewhere{}), IsEmpty()) << "wait";
    EXPECT_THAT(b.step(3.5, Tick{}), ElementsAre("connect at d once until 4.7 s"));
    EXPECT_THAT(b.told(3.6, rendezvous::Refused{"another run"}), IsEmpty())
        << "a stranger on that port is passed over";
    EXPECT_THAT(b.step(3.8, Tick{}), ElementsAre("connect at a once until 5.3 s"));
}
