// What operators may ask of a job, and what they get to read (operating.cc, status.cc). Scripts of
// two or three nodes.
#include <gmock/gmock.h>

#include "tests/rendezvous/machine/machine_script.h"

using namespace ddprun;
using namespace ddprun::rendezvous;
using namespace ddprun::test;

namespace {

Operated asked(OperatorAction action) { return {"alice@login1", std::move(action)}; }
const auto kRestart0 = RestartGeneration{Generation{0}};

const NodeStatus& of(const JobStatus& job, const std::string& name) {
    for (const NodeStatus& node : job.nodes)
        if (node.name == name) return node;
    throw std::out_of_range(name);
}

// Nodes a, b and c of a job that needs two of them; generation 0 runs on all.
void three_run(Script& s) {
    for (int i = 0; i < 3; ++i) s.join(0, 1 + i, node(std::string(1, static_cast<char>('a' + i))));
    for (int i = 1; i <= 3; ++i) s.beat(0.5, i);
    s.created(0.6);
    for (int i = 1; i <= 3; ++i) s.runs(1, i, 0);
}

// Both nodes beat each second, and say at which step they are. Returns the lines of the log.
Lines told_while_it_runs(Script& s, int from, int until, std::int64_t steps_a_second = 0) {
    Lines told;
    for (int now = from; now < until; ++now)
        for (const int session : {1, 2})
            for (const std::string& line : s.is_at(now, session, steps_a_second * now))
                if (line.starts_with("note: ")) told.push_back(line.substr(6));
    return told;
}

TEST(StatusLine, ComesAfterSilence) {
    MachineConfig config = Script::config(limits(2, 2));
    config.status_every = sec(20);
    config.ends = sec(7200);
    Script s(config);
    s.both_run();
    s.snapshots(1.5, 1, 40);
    EXPECT_THAT(
        told_while_it_runs(s, 2, 45, 10),
        ElementsAre("generation 0 has run for 20.4 s, step 210, newest snapshot 40; 0 restarts so "
                    "far; 119 m 39 s left",
                    "generation 0 has run for 40.4 s, step 410 (200 more than at the last such "
                    "line), newest snapshot 40; 0 restarts so far; 119 m 19 s left"));
    EXPECT_LE(s.next(), at(61)) << "it comes without any event, too";
    s.fails(45, 1, 0, exited(0, 1));
    EXPECT_THAT(s.tick(90), Not(Contains(HasSubstr("has run")))) << "the generation has ended";
}

TEST(StatusLine, NeverComesIfNobodyWantsIt) {
    Script s(limits(2, 2));
    s.both_run();
    EXPECT_THAT(told_while_it_runs(s, 2, 1000), IsEmpty());
}

TEST(Operating, ARestartEndsTheGenerationAndStandsInTheNextEntry) {
    Script s(limits(2, 2));
    s.both_run();
    EXPECT_THAT(
        s.step(2, asked(kRestart0)),
        AllOf(Contains(HasSubstr("restarted by alice@login1 with ddpctl; generation 0 ends")),
              Contains(HasSubstr("answer: done"))));
    s.vows(2.1, 1, 0);
    EXPECT_THAT(
        s.vows(2.1, 2, 0),
        Contains("create 1: generation 1 {a b} after restarted by alice@login1 with ddpctl"));
    EXPECT_EQ(s.creating().assignment.restarts, 0) << "an operator uses up no restart";
}

// Also who asks again is told, and who looks. A stop before the time limit gives each node a time
// of its own, which the leader does not know.
TEST(Operating, AStopSaysHowLongTheWorkersHave) {
    MachineConfig config = Script::config(limits(2, 2));
    config.grace = sec(30);
    Script s(config);
    s.both_run();
    EXPECT_FALSE(s.status(1.5).kills);
    EXPECT_THAT(s.step(2, asked(StopJob{})),
                Contains(HasSubstr("its workers have 30.0 s to write a snapshot")));
    EXPECT_THAT(s.step(4, asked(StopJob{})),
                ElementsAre(HasSubstr("already: the job is ending already: ddpctl stop by "
                                      "alice@login1; what still runs is killed in 28.0 s")));
    EXPECT_EQ(s.status(4).kills, at(32).time_since_epoch());
    Script limited(config);
    limited.both_run();
    limited.come(2, 1, StopAsked{0, "the time limit", StopCause::time_limit, sec(60), true});
    EXPECT_FALSE(limited.status(3).kills);
}

// The answer may be lost with the leader, so the operator's program asks again.
TEST(Operating, ARestartThatIsRepeatedEndsNoSecondGeneration) {
    Script s(limits(2, 2));
    s.both_run();
    s.step(2, asked(kRestart0));
    EXPECT_THAT(s.step(2.05, asked(kRestart0)), ElementsAre(HasSubstr("answer: already")));
    s.vows(2.1, 1, 0);
    s.vows(2.1, 2, 0);
    EXPECT_THAT(s.step(2.15, asked(kRestart0)), ElementsAre(HasSubstr("answer: again")));
    s.created(2.2);
    EXPECT_THAT(s.step(2.3, asked(kRestart0)),
                ElementsAre("answer: already: generation 0 has ended; generation 1 followed"));
    EXPECT_TRUE(s.status(2.3).runs);
    EXPECT_THAT(s.step(2.3, asked(RestartGeneration{Generation{9}})),
                ElementsAre(HasSubstr("answer: refused: there is no generation 9")));
}

TEST(Operating, Rule27b_AStopReachesAllNodesAndStandsInTheEnd) {
    Script s(limits(2, 2));
    s.both_run();
    EXPECT_THAT(s.step(2, asked(StopJob{})),
                AllOf(Contains("1: Stop by signal 15"), Contains("2: Stop by signal 15"),
                      Contains(HasSubstr("answer: done"))));
    EXPECT_EQ(s.status(2).stopping, "ddpctl stop by alice@login1");
    EXPECT_THAT(s.step(2.1, asked(StopJob{})), ElementsAre(HasSubstr("answer: already")));
    EXPECT_THAT(s.step(2.1, asked(kRestart0)), ElementsAre(HasSubstr("answer: refused")))
        << "a restart would take the workers' time for a snapshot";
    s.completes(3, 1, 0);
    s.completes(3, 2, 0);
    s.vows(3.1, 1, 0);
    EXPECT_THAT(s.vows(3.1, 2, 0),
                Contains("create 1: end 143, stopped: ddpctl stop by alice@login1"));
}

// Whoever stops the job by hand wants it to end.
TEST(Operating, AStopTakesTheRequeueOfAnEarlierStopBack) {
    Script s(limits(2, 2));
    s.both_run();
    s.come(2, 1, StopAsked{10, "signal 10", StopCause::named_signal, {}, true});
    EXPECT_THAT(s.step(2.1, asked(StopJob{})), AllOf(Contains(HasSubstr("the job is not requeued")),
                                                     Contains(HasSubstr("answer: done"))));
}

TEST(Operating, AStopWorksWhileNodesAreMissing) {
    Script s(limits(2, 2));
    s.join(0, 1, node("a"));
    EXPECT_THAT(s.step(1, asked(StopJob{})),
                Contains("create 0: end 143, stopped: ddpctl stop by alice@login1"));
}

TEST(Operating, ADrainedNodeLosesItsPlaceForTheRestOfTheJob) {
    Script s(limits(2, 3));
    three_run(s);
    EXPECT_THAT(s.step(2, asked(DrainNode{"b"})),
                AllOf(Contains(HasSubstr("node b was taken out by alice@login1 with ddpctl")),
                      Contains(HasSubstr("answer: done"))));
    s.vows(2.1, 1, 0);
    s.vows(2.1, 2, 0);
    EXPECT_THAT(s.vows(2.1, 3, 0),
                Contains(HasSubstr("create 1: generation 1 {a c} after node b")));
    EXPECT_THAT(s.creating().blame.drained, ElementsAre("b"));
    s.created(2.2);
    EXPECT_EQ(of(s.status(2.3), "b").state, NodeStatus::State::drained);
    EXPECT_THAT(s.step(2.3, asked(DrainNode{"b"})), ElementsAre(HasSubstr("answer: already")));
    // It stays connected, and a larger world would be possible. It is not taken in.
    s.snapshots(5, 1, 10);
    for (int i = 1; i <= 3; ++i) s.beat(6, i);
    EXPECT_THAT(s.tick(700), Not(Contains(HasSubstr("Stop"))));
}

// The next leader knows it from the ledger.
TEST(Operating, Rule27f_ADrainIsKnownToTheNextLeader) {
    Script first(limits(2, 3));
    three_run(first);
    first.step(2, asked(DrainNode{"b"}));
    for (int i = 1; i <= 3; ++i) first.vows(2.1, i, 0);
    LedgerEntry recorded = first.creating();
    recorded.number = EntryNumber{0};  // the only one in this ledger
    Machine next(Script::config(limits(2, 3)), at(0));
    next.step(at(0), Lead{{node("leader"), "leader", 1}});
    next.step(at(0), LedgerRead{{recorded}});
    EXPECT_EQ(of(next.status(at(1)), "a").state, NodeStatus::State::missing);
    next.step(at(1), Came{Session{2}, Hello{"job", node("b"), "1", 0}});
    next.step(at(1), Came{Session{2}, Join{offer(), Beat{.number = 1}}});
    EXPECT_EQ(of(next.status(at(1)), "b").state, NodeStatus::State::drained);
    const Effects effects = next.step(at(1), asked(DrainNode{"b"}));
    EXPECT_NE(std::get<Answered>(effects.back()).answer, OperatorAnswer::done);
}

// A create that has failed may have written its entry all the same, with the host in it.
TEST(Operating, Rule27g_ADrainWaitsForAnEntryInDoubt) {
    Script s(limits(2, 2, 3));
    three_run(s);
    s.step(2, asked(kRestart0));
    for (int i = 1; i <= 3; ++i) s.vows(2.1, i, 0);
    s.created(2.2, LedgerCreated::Outcome::failed);
    EXPECT_THAT(s.step(2.3, asked(DrainNode{"c"})), ElementsAre(HasSubstr("answer: again")));
    EXPECT_THAT(s.step(2.3, asked(RestartGeneration{Generation{0}})),
                ElementsAre(HasSubstr("answer: again")));
    for (int i = 1; i <= 3; ++i) s.beat(3.5, i);
    s.created(3.6);
    EXPECT_THAT(s.step(3.7, asked(DrainNode{"c"})), Contains(HasSubstr("answer: done")));
}

// Until an entry records it, only this leader knows it. Who asked hears that.
TEST(Operating, ADrainOfASpareMayHaveToBeRepeated) {
    Script s(limits(2, 2));
    s.both_run();
    s.join(1.5, 3, node("c"));
    EXPECT_THAT(s.step(2, asked(DrainNode{"c"})),
                Contains(AllOf(HasSubstr("answer: done"),
                               HasSubstr("if the leader is lost before the next generation, ask "
                                         "again"))));
    EXPECT_TRUE(s.status(2).runs);
}

TEST(Operating, WithoutAGenerationNothingCanBeRestarted) {
    Script s(limits(2, 2));
    s.join(0, 1, node("a"));
    EXPECT_THAT(s.step(1, asked(RestartGeneration{kNoGeneration})),
                ElementsAre("answer: refused: there is no generation yet"));
}

TEST(Operating, ADrainThatWouldEndTheJobIsRefused) {
    Script s(limits(2, 2));
    s.both_run();
    EXPECT_THAT(s.step(2, asked(DrainNode{"b"})),
                ElementsAre(HasSubstr("answer: refused: without b this job has 1 of its nodes, and "
                                      "the job needs 2")));
    EXPECT_THAT(s.step(2, asked(DrainNode{"z"})), ElementsAre(HasSubstr("answer: unknown node")));
    EXPECT_TRUE(s.status(2).runs);
}

SetLimits nodes(int min, int max) { return {{min, max, {}}}; }
SetLimits restarts(int most) { return {{.min_nodes = {}, .max_nodes = {}, .max_restarts = most}}; }

// Nodes a, b and c of a job with MAX 2; generation 0 runs on a and b.
void two_of_three_run(Script& s) {
    s.both_run();
    s.join(1.5, 3, node("c"));
    s.beat(1.6, 3);
}

TEST(Operating, LimitsAreSaidAndShown) {
    Script s(limits(2, 3));
    three_run(s);
    EXPECT_THAT(s.step(2, asked(SetLimits{{.min_nodes = 1, .max_nodes = {}, .max_restarts = 7}})),
                AllOf(Contains("note: alice@login1 has set limits with ddpctl: 1 to 3 nodes, 0 of "
                               "7 restarts used"),
                      Contains("answer: done: from now on: 1 to 3 nodes, 0 of 7 restarts used; "
                               "generation 0 goes on as it is (ddpctl restart ends it)")));
    const JobStatus job = s.status(2);
    EXPECT_EQ(job.min_nodes, 1);
    EXPECT_EQ(job.max_nodes, 3);
    EXPECT_EQ(job.max_restarts, 7);
    EXPECT_THAT(s.step(2.1, asked(restarts(7))),
                ElementsAre("answer: already: these limits hold already: 1 to 3 nodes, 0 of 7 "
                            "restarts used"));
}

// It costs no work: the generation ends when somebody says so.
TEST(Operating, ASmallerMaxEndsNothingAndHoldsFromTheNextGenerationOn) {
    Script s(limits(2, 3));
    three_run(s);
    EXPECT_THAT(s.step(2, asked(nodes(2, 2))),
                AllOf(Contains(HasSubstr("note: alice")), Contains(HasSubstr("answer: done"))));
    EXPECT_TRUE(s.status(2).runs);
    s.step(3, asked(kRestart0));
    for (int i = 1; i <= 3; ++i) s.vows(3.1, i, 0);
    EXPECT_THAT(names(s.creating().assignment), "1 {a b}");
    EXPECT_EQ(s.creating().limits, (OperatorLimits{2, 2, {}, "alice@login1"}));
}

// With --on-join=spare the world keeps its size, but not above MAX.
TEST(Operating, ASmallerMaxHoldsForSparesToo) {
    Limits three = limits(2, 3);
    three.on_join = OnJoin::spare;
    Script s(three);
    three_run(s);
    s.step(2, asked(nodes(2, 2)));
    s.step(3, asked(kRestart0));
    for (int i = 1; i <= 3; ++i) s.vows(3.1, i, 0);
    EXPECT_THAT(names(s.creating().assignment), "1 {a b}");
}

// The spare is taken in at the next snapshot, as a node that comes late.
TEST(Operating, ALargerMaxTakesSparesIn) {
    Script s(limits(2, 2));
    two_of_three_run(s);
    EXPECT_THAT(s.snapshots(2, 1, 10), Not(Contains(HasSubstr("Stop"))));
    EXPECT_THAT(s.step(3, asked(nodes(2, 3))), Contains(HasSubstr("answer: done")));
    EXPECT_THAT(s.snapshots(4, 1, 20), Contains("1: Stop by signal 15"));
    EXPECT_THAT(s.status(4).stopping, HasSubstr("growing from 2 to 3 of 3 nodes"));
}

// A job that waits for a node that will not come can be told to go on without it.
TEST(Operating, ASmallerMinEndsAWait) {
    Script s(limits(2, 2));
    s.both_run();
    s.step(2, Came{Session{2}, Leave{"its host is repaired"}});
    s.vows(2.1, 1, 0);
    EXPECT_THAT(s.beat(5, 1), Not(Contains(HasSubstr("create"))));
    EXPECT_THAT(s.step(5.1, asked(nodes(1, 2))), Contains(HasSubstr("create 1: generation 1 {a}")));
    EXPECT_EQ(s.creating().limits, (OperatorLimits{1, 2, {}, "alice@login1"}));
}

// Restarts that were not foreseen are allowed, or no more of them.
TEST(Operating, Rule27n_ABudgetHoldsForTheNextFailure) {
    Script s(limits(2, 2, 0));
    s.both_run();
    s.step(2, asked(restarts(1)));
    s.fails(3, 1, 0, exited(0, 1));
    s.vows(3.1, 1, 0);
    EXPECT_THAT(s.vows(3.1, 2, 0), Contains(HasSubstr("create 1: generation 1")));
    EXPECT_EQ(s.creating().assignment.max_restarts, 1) << "workers are told";
    s.created(3.2);
    for (int i = 1; i <= 2; ++i) s.runs(3.5, i, 1);
    EXPECT_THAT(s.step(4, asked(restarts(0))),
                Contains(HasSubstr("1 of 0 restarts used: the next failure of a worker ends the "
                                   "job")));
    s.fails(5, 1, 1, exited(0, 1));
    s.vows(5.1, 1, 1);
    EXPECT_THAT(s.vows(5.1, 2, 1), Contains(HasSubstr("create 2: end 1, no restart")));
}

TEST(Operating, Rule27i_LimitsAreKnownToTheNextLeader) {
    Script first(limits(2, 3));
    three_run(first);
    first.step(2, asked(SetLimits{{.min_nodes = 1, .max_nodes = 2, .max_restarts = 9}}));
    first.step(2.1, asked(kRestart0));
    for (int i = 1; i <= 3; ++i) first.vows(2.2, i, 0);
    LedgerEntry recorded = first.creating();
    recorded.number = EntryNumber{0};  // the only one in this ledger
    Machine next(Script::config(limits(2, 3)), at(0));
    next.step(at(0), Lead{{node("leader"), "leader", 1}});
    next.step(at(0), LedgerRead{{recorded}});
    const JobStatus job = next.status(at(1));
    EXPECT_EQ(job.min_nodes, 1);
    EXPECT_EQ(job.max_nodes, 2);
    EXPECT_EQ(job.max_restarts, 9);
}

// The leader is lost before any entry has them. Each node that it has told tells the next one.
TEST(Operating, Rule27l_LimitsThatNoEntryHasReachTheNextLeader) {
    Script first(limits(2, 3));
    three_run(first);
    EXPECT_THAT(first.step(2, asked(nodes(1, 2))), Contains(HasSubstr("2: Ack")));
    const Facts known = first.told(2);
    EXPECT_EQ(known.limits.limits, (OperatorLimits{1, 2, {}, "alice@login1"}));

    Machine next(Script::config(limits(2, 3)), at(0));
    next.step(at(0), Lead{{node("leader"), "leader", 1}});
    next.step(at(0), LedgerRead{{first.creating()}});
    EXPECT_EQ(next.status(at(1)).min_nodes, 2);
    const auto joins = [&](double now, int session, const char* name) {
        next.step(at(now), Came{Session{session}, Hello{"job", node(name), "1", 0}});
        Join join{offer(), Beat{.number = 1}};
        join.facts = known;
        return Script::lines(next.step(at(now), Came{Session{session}, join}));
    };
    EXPECT_THAT(joins(1, 1, "b"),
                Contains("note: limits that alice@login1 has set with ddpctl are taken over from "
                         "the leader before: 1 to 2 nodes, 0 of 3 restarts used"));
    EXPECT_EQ(next.status(at(2)).min_nodes, 1);
    EXPECT_EQ(next.status(at(2)).max_nodes, 2);
    EXPECT_THAT(joins(2, 2, "c"), Not(Contains(HasSubstr("limits that")))) << "nothing new";
}

// While an entry is on its way nobody knows whether it has them.
TEST(Operating, LimitsWaitForAnEntry) {
    Script s(limits(2, 2, 3));
    s.both_run();
    s.step(2, asked(kRestart0));
    for (int i = 1; i <= 2; ++i) s.vows(2.1, i, 0);
    EXPECT_THAT(s.step(2.2, asked(nodes(1, 2))), ElementsAre(HasSubstr("answer: again")));
    s.created(2.3, LedgerCreated::Outcome::failed);
    EXPECT_THAT(s.step(2.4, asked(nodes(1, 2))), ElementsAre(HasSubstr("answer: again")));
    for (int i = 1; i <= 2; ++i) s.beat(3.5, i);
    s.created(3.6);
    EXPECT_THAT(s.step(3.7, asked(nodes(1, 2))), Contains(HasSubstr("answer: done")));
}

TEST(Operating, Rule27o_LimitsThatDoNotFitAreRefused) {
    Script s(limits(2, 2));
    two_of_three_run(s);
    EXPECT_THAT(s.step(2, asked(nodes(4, 4))),
                ElementsAre(HasSubstr("answer: refused: --min-nodes=4 is more than the 3 nodes "
                                      "that are here")));
    EXPECT_EQ(s.status(2).max_nodes, 2) << "nothing of it holds";
    Script one(limits(1, 1));
    one.join(0, 1, node("a"));
    one.created(0.1);
    EXPECT_THAT(one.step(1, asked(nodes(1, 2))),
                ElementsAre(HasSubstr("answer: refused: a job of one node")));
    EXPECT_THAT(one.step(1, asked(restarts(7))), Contains(HasSubstr("answer: done")));
    EXPECT_EQ(one.status(1).max_restarts, 7);
    s.step(3, asked(StopJob{}));
    EXPECT_THAT(s.step(3.1, asked(nodes(1, 2))),
                ElementsAre(HasSubstr("answer: refused: the job is ending")));
}

TEST(Operating, ADormantLeaderAsksToTryAgain) {
    Machine machine(Script::config(limits(2, 2)), at(0));
    const Effects effects = machine.step(at(1), asked(StopJob{}));
    ASSERT_EQ(effects.size(), 1U);
    EXPECT_EQ(std::get<Answered>(effects.front()).answer, OperatorAnswer::again);
}

TEST(Status, NamesTheNodeThatHasNotCalled) {
    Limits of_two = limits(2, 2);
    of_two.order = {"n16", "n17"};
    Script s(of_two);
    s.join(0, 1, node("n16"));
    EXPECT_EQ(s.status(1).waiting_for, "waiting for n17: its ddprun has not called");
    EXPECT_EQ(of(s.status(1), "n17").state, NodeStatus::State::missing);
    EXPECT_EQ(of(s.status(1), "n16").state, NodeStatus::State::ready);
    s.step(2, ConnectionLost{Session{1}});
    EXPECT_EQ(of(s.status(2), "n16").why, "its connection is lost");
}

// Of the nodes that are connected; a sum keeps what a node has counted that has left, and counts a
// node once that comes back. Only numbers of this kind change while a job trains, and nobody who
// watches it is told of each.
TEST(Status, SumsUpWhatTheNodesUse) {
    Script s(limits(1, 3));
    three_run(s);
    s.uses(2, 1, {.memory = 50, .log_bytes = 10, .store_operations = 5, .store_waiters = 1});
    s.uses(2, 2, {.memory = 70, .log_bytes = 20, .store_operations = 6, .store_waiters = 2});
    const JobStatus before = s.status(2);
    EXPECT_EQ(before.usage.largest_memory, 70);
    EXPECT_EQ(before.usage.log_bytes, 30);
    EXPECT_EQ(before.usage.store_operations, 11);
    EXPECT_EQ(before.usage.store_waiters, 3);
    s.uses(2.1, 1, {.memory = 55, .log_bytes = 11, .store_operations = 5, .store_waiters = 1});
    EXPECT_EQ(s.status(2.1).usage.log_bytes, 31);
    EXPECT_EQ(s.status(2.1), before);
    s.step(2.2, ConnectionLost{Session{2}});
    EXPECT_EQ(s.status(2.2).usage.largest_memory, 55);
    EXPECT_EQ(s.status(2.2).usage.store_waiters, 1);
    EXPECT_EQ(s.status(2.2).usage.log_bytes, 31);
    EXPECT_EQ(s.status(2.2).usage.store_operations, 11);
    s.hello(2.3, 8, node("b"));
    EXPECT_EQ(s.status(2.3).usage.log_bytes, 31) << "it has not joined yet";
    s.join(2.3, 9, node("b"));
    s.uses(2.4, 9, {.log_bytes = 25, .store_operations = 8});
    EXPECT_EQ(s.status(2.4).usage.log_bytes, 36);
    EXPECT_EQ(s.status(2.4).usage.store_operations, 13);
}

// Of the nodes' snapshots, the one whose training has lost most by them counts. A failure takes the
// rest of its time from training.
TEST(Operating, SavingIsAPartOfTheTimeInTheNextEntry) {
    MachineConfig config = Script::config(limits(2, 2, 1));
    config.to_day = sec(1000);  // 0 would be the day of an entry without times
    Script s(config);
    s.both_run();
    for (const int session : {1, 2})
        s.marks(2, session, 0,
                {{RestartPhase::started, 1.0},
                 {RestartPhase::contact, 1.1},
                 {RestartPhase::progress, 1.5}});
    s.saves(3, 1, sec(0.3));
    s.saves(3, 2, sec(0.2));
    s.fails(4, 1, 0, exited(0, 1));
    s.vows(4.1, 1, 0);
    s.vows(4.1, 2, 0);
    EXPECT_TRUE(s.creating().makes_generation());
    EXPECT_EQ(s.creating().time.spent.saving, sec(0.3));
    EXPECT_GT(s.creating().time.spent.training, sec(2));
}

// Enough nodes are here, and nobody is named: the last call runs.
TEST(Status, TellsThatMoreNodesMayCome) {
    Script s(limits(1, 4));
    s.join(0, 1, node("a"));
    s.beat(0.5, 1);
    EXPECT_THAT(s.status(1).waiting_for, HasSubstr("1 of 4 nodes"));
}

TEST(Status, TellsRanksAndBudgetOfAGenerationThatRuns) {
    Script s(limits(2, 2));
    s.both_run();
    const JobStatus job = s.status(2);
    EXPECT_TRUE(job.runs);
    EXPECT_EQ(job.world_size, 2);
    EXPECT_EQ(job.restarts, 0);
    EXPECT_EQ(job.max_restarts, 3);
    EXPECT_EQ(job.waiting_for, "");
    EXPECT_EQ(of(job, "b").first_rank, 1);
    EXPECT_EQ(of(job, "b").state, NodeStatus::State::running);
    EXPECT_EQ(job, s.status(3)) << "nothing has changed, so nothing differs";
}

TEST(Status, TellsWhatEndedTheGenerationBefore) {
    Script s(limits(2, 2));
    s.both_run();
    s.fails(2, 2, 0, exited(1, 9));
    EXPECT_FALSE(s.status(2).runs);
    EXPECT_EQ(s.status(2).ended_by, exited(1, 9).sentence);
    EXPECT_THAT(s.status(2).waiting_for, HasSubstr("a: it is still stopping the workers of"));
}

}  // namespace
