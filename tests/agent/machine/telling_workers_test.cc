// What the workers of a node are told of others, and when: before the signal that stops them.
// Scripts of one node with ranks 0 and 1 of 4 (machine.h).
#include "tests/agent/machine/machine_script.h"

namespace ddprun::agent {
namespace {

using rendezvous::NewsItem;
using rendezvous::NewsKind;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

Lines told(Script& s) { return s.take_notices(); }

// The leader's Ack with these news of generation 0. `over`: it has ended.
void hears(Script& s, double now, std::vector<NewsItem> items, int over = -1) {
    rendezvous::Ack ack = s.next_ack();
    ack.held = Generation{over < 0 ? 0 : -1};
    ack.over = Generation{over};
    ack.news = rendezvous::News{g0, std::move(items)};
    s.told(now, ack);
}

// Its account of its death may lie on a file system that hangs, so the others do not wait for that.
TEST(TellingWorkers, ADeathIsToldAtOnceAndTheStopBeforeItsSignal) {
    Script s;
    s.run();
    s.step(1, WorkerLost{g0, 1, 0, 9, at(1)});
    EXPECT_THAT(told(s), ElementsAre("worker_lost 1"));
    rendezvous::WorkerOutcome outcome = exited(1, 0);
    outcome.signal = 9;
    const Lines lines = s.exits(1.1, outcome);
    EXPECT_THAT(lines, Contains("signal 15"));
    EXPECT_THAT(told(s), ElementsAre("stop restart 15"));
    hears(s, 1.2, {{NewsKind::worker_lost, "a", 1, 1, 0, 9}}, 0);
    EXPECT_THAT(told(s), IsEmpty()) << "the leader says it of our own worker";
}

TEST(TellingWorkers, WhatDiesOfTheStopIsNotTold) {
    Script s;
    s.run();
    s.ack(1, 0);
    EXPECT_THAT(told(s), ElementsAre("stop restart 15"));
    s.step(1.1, WorkerLost{g0, 0, 0, 15, at(1.1)});
    EXPECT_THAT(told(s), IsEmpty());
    s.step(1.2, WorkerLost{g0, 1, 1, 0, at(0.9)});
    EXPECT_THAT(told(s), ElementsAre("worker_lost 1")) << "this one had died before";
}

TEST(TellingWorkers, AWorkerThatWasNotStartedIsLost) {
    Script s;
    s.run();
    s.step(1, WorkerNotStarted{g0, 1, "no such file", 127});
    EXPECT_THAT(told(s), ElementsAre("worker_lost 1", "stop restart 15"));
}

TEST(TellingWorkers, Rule16h_NewsOfTheLeaderComeOnceAndBeforeTheStop) {
    Script s;
    s.run();
    hears(s, 1, {{NewsKind::node_joined, "c"}});
    EXPECT_THAT(told(s), ElementsAre("node_joined c"));
    hears(s, 2, {{NewsKind::node_joined, "c"}, {NewsKind::node_lost, "b", 2, 2}}, 0);
    EXPECT_THAT(told(s), ElementsAre("node_lost b", "stop restart 15"));
}

TEST(TellingWorkers, NewsOfAnotherGenerationAreNotTold) {
    Script s;
    s.run();
    rendezvous::Ack ack = s.next_ack();
    ack.news = rendezvous::News{Generation{1}, {{NewsKind::node_joined, "c"}}};
    s.told(1, ack);
    EXPECT_THAT(told(s), IsEmpty());
    Script idle;
    idle.join();
    hears(idle, 1, {{NewsKind::node_joined, "c"}});
    EXPECT_THAT(told(idle), IsEmpty());
}

TEST(TellingWorkers, APlannedStopHasItsReason) {
    Script s;
    s.run();
    rendezvous::Stop stop{.generation = g0, .signal = 0, .reason = "1 min left"};
    stop.cause = rendezvous::StopCause::time_limit;
    s.told(1, stop);
    EXPECT_THAT(told(s), ElementsAre("stop time_limit 15"));
}

TEST(TellingWorkers, ASnapshotIsAskedForOnce) {
    Script s;
    s.run();
    for (const double now : {1.0, 1.5}) {
        rendezvous::Ack ack = s.next_ack();
        ack.held = g0;
        ack.snapshot = rendezvous::SnapshotAsked{7, "alice@login1"};
        s.told(now, ack);
    }
    EXPECT_THAT(told(s), ElementsAre("snapshot 7"));
}

// Nobody who is killed at once can read it.
TEST(TellingWorkers, AKillIsNotAStop) {
    Script s;
    s.run();
    s.step(1, KeeperFrozen{});
    EXPECT_THAT(told(s), IsEmpty());
}

}  // namespace
}  // namespace ddprun::agent
