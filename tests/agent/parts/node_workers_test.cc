// What a node knows of its workers, and what its Beats say of them. Pure; no process is started.
#include "agent/parts/node_workers.h"

#include <gmock/gmock.h>

#include "tests/support/builders.h"

namespace ddprun::agent {
namespace {

using namespace ddprun::test;
using rendezvous::RankStep;
using rendezvous::RestartPhase;
using testing::ElementsAre;

rendezvous::Beat told(const NodeWorkers& workers, double now) {
    rendezvous::Beat beat;
    workers.tell(beat, at(now));
    return beat;
}

// Two workers with ranks 4 and 5. Starts come without a number, because only the last one matters.
TEST(NodeWorkers, SaysWhenTheLastOneHasStartedAndEnded) {
    NodeWorkers workers(2, 4);
    EXPECT_FALSE(workers.started(at(1)));
    EXPECT_TRUE(workers.started(at(2)));
    EXPECT_FALSE(workers.ended(1, at(3)));
    EXPECT_EQ(workers.living(), 1);
    EXPECT_EQ(workers.all_ended_at(), kNever);
    EXPECT_TRUE(workers.ended(0, at(4)));
    EXPECT_TRUE(workers.have_ended());
    EXPECT_EQ(workers.all_ended_at(), at(4));
}

// They save at the same time, so the one that has lost most by it counts.
TEST(NodeWorkers, TellsTheLongestTimeOfSaving) {
    NodeWorkers workers(2, 0);
    workers.saving(0, sec(5));
    workers.saving(0, sec(4));
    workers.saving(1, sec(3));
    EXPECT_EQ(told(workers, 10).saving, sec(5));
}

// The keeper has killed and reaped all that was left. Exits of single workers may never be
// reported.
TEST(NodeWorkers, WhatTheKeeperHasClearedAwayHasEnded) {
    NodeWorkers workers(2, 0);
    workers.all_are_gone();
    EXPECT_TRUE(workers.have_ended());
    EXPECT_EQ(workers.living(), 0);
}

// Five workers with ranks 10 to 14. Three are named: local rank 1 (whose second report goes back),
// then 2 and 0. Local rank 3 has ended, and 4 has never named a step.
TEST(NodeWorkers, TellsTheSlowestOfTheLivingByTheirRanks) {
    NodeWorkers workers(5, 10);
    workers.progressed(0, 7, at(1));
    workers.progressed(1, 3, at(2));
    workers.progressed(2, 5, at(3));
    workers.progressed(3, 4, at(4));
    // A report that comes late: worker 1 was at step 3 already.
    workers.progressed(1, 2, at(5));
    workers.ended(3, at(6));
    const rendezvous::Beat beat = told(workers, 8);
    EXPECT_EQ(beat.step, 7);
    EXPECT_EQ(beat.reports, 5);
    EXPECT_EQ(beat.reported, sec(3));
    EXPECT_THAT(beat.slowest, ElementsAre(RankStep{11, 3}, RankStep{12, 5}, RankStep{10, 7}))
        << "a step never goes back; who has named none comes last";
}

// The phases by which a restart is measured: the last start, the first contact, the first progress.
TEST(NodeWorkers, PassTheMarksOfAStart) {
    NodeWorkers workers(1, 0);
    EXPECT_TRUE(workers.marks(at(0)).empty());
    workers.started(at(1));
    EXPECT_TRUE(workers.in_contact(at(2)));
    EXPECT_FALSE(workers.in_contact(at(3))) << "the first counts";
    workers.progressed(0, 1, at(4));
    workers.progressed(0, 2, at(5));
    EXPECT_THAT(workers.marks(at(6)),
                ElementsAre(rendezvous::Mark{RestartPhase::started, sec(5)},
                            rendezvous::Mark{RestartPhase::contact, sec(4)},
                            rendezvous::Mark{RestartPhase::progress, sec(2)}));
}

}  // namespace
}  // namespace ddprun::agent
