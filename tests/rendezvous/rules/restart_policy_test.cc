#include "rendezvous/rules/restart_policy.h"

#include <gtest/gtest.h>

#include "tests/support/builders.h"

using namespace ddprun;
using namespace ddprun::rendezvous;
using namespace ddprun::test;

namespace {

// A job's failures one after the other; says how each was decided.
struct Job {
    Limits with;
    RestartHistory history{};
    bool progressed = false;  // of each generation from here on

    std::string fails(const WorkerOutcome& failure) {
        return decide_restart(history, failure, progressed, with).sentence;
    }
};

}  // namespace

// auto is 3, but a job that has never made progress has a fault of its own.
TEST(RestartPolicy, AutoRestartsOnlyWhatHasMadeProgress) {
    Job job{limits(1, 1)};
    EXPECT_EQ(job.fails(exited(0, 1)),
              "no restart: the job has never made progress, so the program itself is likely at "
              "fault (--max-restarts=N restarts it anyway)");
    EXPECT_EQ(job.history.restarts, 0);
    job.progressed = true;
    EXPECT_EQ(job.fails(exited(0, 1)), "restart 1 of 3");
    job.progressed = false;  // once is enough for the whole job
    EXPECT_EQ(job.fails(exited(0, 1)), "restart 2 of 3");
}

TEST(RestartPolicy, StopsWhenTheBudgetIsUsedUp) {
    Job job{limits(1, 1, 2), {}, true};
    EXPECT_EQ(job.fails(exited(0, 1)), "restart 1 of 2");
    EXPECT_EQ(job.fails(exited(0, 1)), "restart 2 of 2");
    EXPECT_EQ(job.fails(exited(0, 1)), "restart 2 of 2 used up");
    EXPECT_EQ(job.history.restarts, 2);
}

TEST(RestartPolicy, ZeroMeansNone) {
    Job job{limits(1, 1, 0), {}, true};
    EXPECT_EQ(job.fails(exited(0, 1)), "no restart: --max-restarts is 0");
}

TEST(RestartPolicy, SeesACrashLoopInThreeOfTheSameCause) {
    Job job{limits(1, 1, 9)};
    EXPECT_EQ(job.fails(exited(0, 1, "boom")), "restart 1 of 9");
    EXPECT_EQ(job.fails(exited(0, 1, "boom")), "restart 2 of 9");
    EXPECT_EQ(job.fails(exited(0, 1, "boom")),
              "crash loop: 3 generations in a row failed with the same cause and without progress "
              "(--crash-loop)");
}

// Another rank, another code or another error begins the count anew; so does progress.
TEST(RestartPolicy, CountsOnlyTheSameCauseInARow) {
    Job job{limits(1, 1, 9)};
    for (const WorkerOutcome& failure : {exited(0, 1, "a"), exited(0, 1, "b"), exited(0, 2, "b"),
                                         exited(1, 2, "b"), killed(1, 9)}) {
        job.fails(failure);
        EXPECT_EQ(job.history.in_a_row, 1) << failure.sentence;
    }
    job.fails(killed(1, 9));
    EXPECT_EQ(job.history.in_a_row, 2);
    job.progressed = true;
    EXPECT_EQ(job.fails(killed(1, 9)), "restart 7 of 9");
    EXPECT_EQ(job.history.in_a_row, 0);
}

TEST(RestartPolicy, CrashLoopOfZeroIsOff) {
    Job job{limits(1, 1, 9)};
    job.with.crash_loop = 0;
    for (int i = 1; i <= 9; ++i)
        EXPECT_EQ(job.fails(exited(0, 1)), "restart " + std::to_string(i) + " of 9");
}

TEST(RestartPolicy, TellsWorkersTheBudgetInNumbers) {
    EXPECT_EQ(restart_budget(kAutoRestarts), 3);
    EXPECT_EQ(restart_budget(0), 0);
    EXPECT_EQ(restart_budget(7), 7);
}
