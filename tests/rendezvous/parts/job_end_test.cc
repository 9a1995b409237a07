// How the job ends, and how long the leader waits for absent nodes (PROTOCOL.md, rule 24). Pure.
// The lease is 10 s. The time of day is 1000 s ahead of the leader's clock.
#include "rendezvous/parts/job_end.h"

#include <gmock/gmock.h>

#include "tests/support/builders.h"

namespace ddprun::rendezvous {
namespace {

using namespace ddprun::test;

constexpr Duration kEndLease = std::chrono::seconds{10};

// Generation 2 ended at 5 because b was lost.
GenerationFacts lost_b() {
    GenerationFacts facts(Generation{2});
    facts.interrupt({"b", "node b is lost", true}, at(5));
    return facts;
}

// b was lost at 5 and nobody came in its place until 70. The report must show the loss and its
// time: that is what the user looks for in the logs of the cluster.
TEST(JobEnd, NamesTheLossThatIsItsReason) {
    JobEnd end;
    EXPECT_FALSE(end.is_decided());
    end.decide(unavailable("only 1 of 2 nodes came"));
    end.complete(at(70), sec(1000), lost_b());
    ASSERT_TRUE(end.ending()->loss);
    EXPECT_EQ(end.ending()->loss->node, "b");
    EXPECT_EQ(end.ending()->at, sec(1005)) << "when the node was lost";
    EXPECT_EQ(end.ending()->generation, Generation{2});
    EXPECT_EQ(end.ending()->code, 69);
}

// The job has survived the loss of b. Its report is a success and nothing else.
TEST(JobEnd, OfASuccessNamesNoLoss) {
    JobEnd end;
    end.decide(ending(Verdict::succeeded, 0, "all 2 workers succeeded"));
    end.complete(at(70), sec(1000), lost_b());
    EXPECT_FALSE(end.ending()->loss);
    EXPECT_EQ(end.ending()->at, sec(1070));
}

// A worker's failure ended the job, and b was lost as well. The failure stays the reason, and the
// loss is named beside it.
TEST(JobEnd, AWorkersFailureKeepsItsOwnTimeAndNamesTheLossBesideIt) {
    JobEnd end;
    Ending failed = ending(Verdict::worker_failed, 1, "rank 0 exited with 1");
    failed.at = sec(1003);
    failed.generation = Generation{2};
    end.decide(failed);
    end.complete(at(70), sec(1000), lost_b());
    EXPECT_EQ(end.ending()->at, sec(1003));
    EXPECT_EQ(end.ending()->loss->node, "b");
}

// A node that was disconnected at the end may connect again and get the verdict. The wait counts
// from when it was last heard, since after one lease of silence its workers have stopped and it may
// be gone.
TEST(JobEnd, Rule24d_WaitsALeaseForWhoWasHeardLately) {
    JobEnd end;
    end.decide(unavailable(""));
    end.closes(at(100), kEndLease);
    EXPECT_EQ(end.waits_until(at(95), kEndLease), at(105));
    EXPECT_EQ(end.waits_until(at(200), kEndLease), at(110)) << "a lease after the end at most";
    EXPECT_FALSE(end.is_told());
    end.told();
    EXPECT_TRUE(end.is_told());
}

// A user cancels the job while it is stopping. And another leader's entry may make the end void.
TEST(JobEnd, ARequeueCanBeTakenBack) {
    JobEnd end;
    EXPECT_FALSE(end.requeues());
    Ending stopped = ending(Verdict::work_left, 75, "stopped");
    stopped.requeue = true;
    end.decide(stopped);
    EXPECT_TRUE(end.requeues());
    end.withdraw_requeue();
    EXPECT_FALSE(end.requeues());
    end.reopen();
    EXPECT_FALSE(end.is_decided());
}

}  // namespace
}  // namespace ddprun::rendezvous
