// The keeper's deadline and its verdict over a frozen ddprun, without processes: what is due at
// which moment. keeper_fence_test.cc has the same stories with real ones. The lease is 10 s, so a
// ddprun that says nothing is killed 1 s after the keeper has seen the deadline pass.
#include "keeper/process/keeper_deadline.h"

#include <gtest/gtest.h>

#include <string>

namespace ddprun::agent::keeper {
namespace {

using std::chrono::seconds;

constexpr Duration kLease = seconds{10};

Time at(double moment) { return Time{share(seconds{1}, moment)}; }

// Who is to be killed at this moment. By default ddprun stands still.
std::string due(Deadline& deadline, double moment, const Pulse& agent = {}) {
    const Deadline::Due now = deadline.look(at(moment), agent);
    if (now.passed && now.agent_frozen) return "both";
    return now.passed ? "workers" : now.agent_frozen ? "ddprun" : "";
}

const Pulse kStarved{seconds{7}, true};  // it waits for a processor

// A new keeper knows no deadline, and kNever takes one back.
TEST(KeeperDeadline, WithoutOneNothingIsEverDue) {
    Deadline deadline;
    EXPECT_EQ(deadline.next(), kNever);
    EXPECT_EQ(due(deadline, 1e9), "");
    deadline.set(at(5), kLease);
    deadline.set(kNever, kLease);
    EXPECT_EQ(deadline.next(), kNever);
    EXPECT_EQ(due(deadline, 1e9), "");
}

// The workers are killed at the deadline, not before, and not twice. No worker may start later: the
// deadline stays. ddprun noticed in time, so it lives.
TEST(KeeperDeadline, PassesOnce) {
    Deadline deadline;
    deadline.set(at(5), kLease);
    EXPECT_EQ(deadline.next(), at(5));
    EXPECT_EQ(due(deadline, 4.9), "");
    EXPECT_EQ(due(deadline, 5), "workers");
    deadline.noticed(at(5.1));
    EXPECT_EQ(due(deadline, 100), "");
    EXPECT_EQ(deadline.next(), kNever);
    EXPECT_EQ(deadline.workers_until(), at(5));
}

// Each Ack moves the deadline. The old one is forgotten, and one that is set after a deadline has
// passed counts again: it belongs to the next generation.
TEST(KeeperDeadline, MayBeMoved) {
    Deadline deadline;
    deadline.set(at(5), kLease);
    deadline.set(at(8), kLease);
    EXPECT_EQ(due(deadline, 7), "");
    EXPECT_EQ(due(deadline, 8), "workers");
    deadline.noticed(at(8.1));
    deadline.set(at(20), kLease);
    EXPECT_EQ(deadline.next(), at(20));
    EXPECT_EQ(due(deadline, 20), "workers");
}

// A ddprun that says nothing is killed, once. Its time counts from the keeper's look, since it was
// asked only then: 7.5 + 1 s, although the deadline was at 5.
TEST(KeeperDeadline, ASilentAgentIsFrozen) {
    Deadline deadline;
    deadline.set(at(5), kLease);
    EXPECT_EQ(due(deadline, 7.5), "workers");
    EXPECT_EQ(deadline.next(), at(8.5));
    EXPECT_EQ(due(deadline, 8.4), "");
    EXPECT_EQ(due(deadline, 8.5), "ddprun");
    EXPECT_EQ(due(deadline, 100), "");
    EXPECT_EQ(deadline.next(), kNever);
}

// The keeper was not scheduled when the deadline passed. The word of ddprun lies in the socket, and
// the keeper reads it before it looks at the clock.
TEST(KeeperDeadline, AnAgentMayNoticeBeforeTheKeeper) {
    Deadline deadline;
    deadline.set(at(5), kLease);
    deadline.noticed(at(5));
    EXPECT_EQ(due(deadline, 60), "workers");
    EXPECT_EQ(due(deadline, 100), "");
}

// A word from before the deadline says nothing about it, even if it is read later: ddprun may have
// frozen just after it.
TEST(KeeperDeadline, AnEarlierWordDoesNotCount) {
    Deadline deadline;
    deadline.set(at(5), kLease);
    deadline.noticed(at(4.9));
    EXPECT_EQ(due(deadline, 60), "workers");
    EXPECT_EQ(due(deadline, 61), "ddprun");
}

// A deadline that a frozen ddprun set just before it froze does not save it, and does not give it
// more time: it was asked at 5, so its time ends at 6, also when the second deadline has passed.
TEST(KeeperDeadline, ANewDeadlineIsNoWord) {
    Deadline deadline;
    deadline.set(at(5), kLease);
    EXPECT_EQ(due(deadline, 5), "workers");
    deadline.set(at(5.5), kLease);
    EXPECT_EQ(deadline.next(), at(5.5));
    EXPECT_EQ(due(deadline, 5.5), "workers");
    EXPECT_EQ(deadline.next(), at(6));
    EXPECT_EQ(due(deadline, 6), "ddprun");
}

// On a loaded host ddprun gets no processor: it is not frozen, and lives when it answers at last.
TEST(KeeperDeadline, AStarvedAgentIsNotFrozen) {
    Deadline deadline;
    deadline.set(at(5), kLease);
    EXPECT_EQ(due(deadline, 5, kStarved), "workers");
    for (double moment = 6; moment < 60; ++moment) {
        EXPECT_EQ(deadline.next(), at(moment));
        EXPECT_EQ(due(deadline, moment, kStarved), "");
    }
    deadline.noticed(at(60));
    EXPECT_EQ(deadline.next(), kNever);
    EXPECT_EQ(due(deadline, 200), "");
}

// So does one that uses the processor, a little in each tenth of a lease, but stands still whenever
// it is looked at: its pages come from a slow disk. When it uses none any more, it is frozen.
TEST(KeeperDeadline, ASlowAgentIsNotFrozen) {
    Deadline deadline;
    deadline.set(at(5), kLease);
    EXPECT_EQ(due(deadline, 5, Pulse{seconds{7}}), "workers");
    EXPECT_EQ(due(deadline, 6, Pulse{seconds{8}}), "");
    EXPECT_EQ(due(deadline, 7, Pulse{seconds{9}}), "");
    EXPECT_EQ(due(deadline, 8, Pulse{seconds{9}}), "ddprun");
}

// Slurm stops ddprun 2 s before it stops the keeper.
TEST(KeeperDeadline, Rule28d_AnAgentThatWasToldToStopIsNotFrozen) {
    Deadline deadline;
    deadline.set(at(5), kLease);
    const Pulse suspended{{}, false, true};
    EXPECT_EQ(due(deadline, 5, suspended), "workers") << "whatever the reason";
    EXPECT_EQ(due(deadline, 6, suspended), "");
    EXPECT_EQ(due(deadline, 3600, {}), "") << "the keeper stood still, too";
    EXPECT_EQ(due(deadline, 3601, {}), "ddprun") << "it was resumed and does not answer";
}

// One that spins and never answers is of no use.
TEST(KeeperDeadline, AnAgentIsNotSlowForEver) {
    Deadline deadline;
    deadline.set(at(5), kLease);
    EXPECT_EQ(due(deadline, 5, kStarved), "workers");
    double moment = 6;
    while (due(deadline, moment, kStarved).empty()) ASSERT_LT(++moment, 100);
    EXPECT_EQ(moment, 65);
}

// The keeper has asked, and then it got no processor itself. As long as both stood still, nobody
// knows whether ddprun could have answered: it has its time anew, also after minutes.
TEST(KeeperDeadline, TimeInWhichTheKeeperItselfDidNotRunIsNotCounted) {
    Deadline deadline;
    deadline.set(at(5), kLease);
    EXPECT_EQ(due(deadline, 5), "workers");
    EXPECT_EQ(due(deadline, 305), "");
    EXPECT_EQ(deadline.next(), at(306));
    EXPECT_EQ(due(deadline, 306), "ddprun");
}

// The keeper was not scheduled until long after the deadline. Even then ddprun gets its time to
// answer, and lives if it does. Only a lease of zero leaves no time.
TEST(KeeperDeadline, TheAgentIsAskedFirst) {
    Deadline deadline;
    deadline.set(at(5), kLease);
    EXPECT_EQ(due(deadline, 100), "workers");
    deadline.noticed(at(100.1));
    EXPECT_EQ(due(deadline, 200), "");
    deadline.set(at(205), Duration{});
    EXPECT_EQ(due(deadline, 205), "both");
}

}  // namespace
}  // namespace ddprun::agent::keeper
