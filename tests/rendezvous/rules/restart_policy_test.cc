// Whether a job restarts after a failure or ends (PROTOCOL.md, rule 17). A pure function. A bug in
// the program does not go away by a restart; a passing fault does.
#include "rendezvous/rules/restart_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/builders.h"

using namespace ddprun;
using namespace ddprun::rendezvous;
using namespace ddprun::test;
using testing::StartsWith;

namespace {

// The failures of one job, one after the other. fails() returns the sentence of the decision, which
// says restart or no restart.
struct Job {
    Limits with;
    RestartHistory history{};
    Reach reach = Reach::start;  // of each generation from here on

    std::string fails(const WorkerOutcome& failure) {
        return decide_restart(history, failure, reach, with).sentence;
    }
};

}  // namespace

// The default is 3 restarts. But what fails before the workers have met is most likely a bug, and a
// restart would only hide its error in a longer log.
TEST(RestartPolicy, Rule17c_AutoRestartsOnlyWhatHasMet) {
    Job job{limits(1, 1)};
    EXPECT_EQ(job.fails(exited(0, 1)),
              "no restart: the workers had not all met yet, so the program itself is likely at "
              "fault, such as an import, an argument or a missing file (--max-restarts=N restarts "
              "it anyway)");
    EXPECT_EQ(job.history.restarts, 0);
    job.reach = Reach::met;
    EXPECT_EQ(
        job.fails(exited(0, 3)),
        "restart 1 of 3 (--max-restarts=auto: the workers had met, or run for half a minute)");
    job.reach = Reach::start;  // once is enough for the whole job
    EXPECT_EQ(job.fails(exited(0, 1)), "restart 2 of 3");
}

// Code 2 is that of a wrong command line, and of ranks that differ: the trainer library finds that
// after they have met. A number of restarts is obeyed, and so is a job that came further.
TEST(RestartPolicy, Rule17l_AutoDoesNotRestartWhatTheUserMustChange) {
    Job job{limits(1, 1), {}, Reach::met};
    EXPECT_EQ(job.fails(exited(0, 2)),
              "no restart: exit code 2 says that the program or its arguments must be changed "
              "(--max-restarts=N restarts it anyway)");
    EXPECT_EQ(job.history.restarts, 0);
    Job told{limits(1, 1, 2), {}, Reach::met};
    EXPECT_EQ(told.fails(exited(0, 2)), "restart 1 of 2");
    Job trained{limits(1, 1), {}, Reach::progressed};
    EXPECT_EQ(trained.fails(exited(0, 2)),
              "restart 1 of 3 (--max-restarts=auto: the workers had made progress)");
    Job before{limits(1, 1)};
    before.history.met = true;  // a node was lost then, which uses up no restart
    EXPECT_EQ(before.fails(exited(0, 1)),
              "restart 1 of 3 (--max-restarts=auto: the workers of an earlier generation had met)");
}

// Who leaves a debugger wants the end, whatever number of restarts was asked for.
TEST(RestartPolicy, Rule17i_DoesNotRestartWhatEndedInItsDebugger) {
    for (const int restarts : {kAutoRestarts, 5}) {
        Job job{limits(1, 1, restarts), {}, Reach::progressed};
        WorkerOutcome quit = exited(1, 1);
        quit.tail = {"  File \"a.py\", line 3, in <module>", "[rank1]: bdb.BdbQuit"};
        EXPECT_EQ(job.fails(quit), "no restart: it ended in its debugger (BdbQuit)");
    }
}

// NCCL looks for a GPU when the workers have met, and will not find one the next time.
TEST(RestartPolicy, AutoDoesNotRestartWhatLacksAGpu) {
    for (const char* error :
         {"ValueError: ProcessGroupNCCL is only supported with GPUs, no GPUs found!",
          "RuntimeError: nccl2 requires at least one CUDA device"}) {
        Job job{limits(1, 1), {}, Reach::met};
        EXPECT_EQ(job.fails(exited(0, 1, error)),
                  "no restart: the program wants NCCL, and there is no GPU here "
                  "(--max-restarts=N restarts it anyway)");
        Job told{limits(1, 1, 2), {}, Reach::met};
        EXPECT_EQ(told.fails(exited(0, 1, error)), "restart 1 of 2");
    }
}

// A worker that never ran has no import or argument that could be wrong.
TEST(RestartPolicy, SaysThatAWorkerNeverRan) {
    Job job{limits(1, 1)};
    EXPECT_EQ(job.fails(exited(0, 126)),
              "no restart: a worker could not be started at all; see its meaning above "
              "(--max-restarts=N restarts it anyway)");
    WorkerOutcome ran = exited(0, 126);
    ran.pid = 5;
    EXPECT_TRUE(job.fails(ran).starts_with("no restart: the workers had not all met yet"));
}

// The budget is one for the whole job. Progress in between does not fill it up again.
TEST(RestartPolicy, StopsWhenTheBudgetIsUsedUp) {
    Job job{limits(1, 1, 2), {}, Reach::progressed};
    EXPECT_EQ(job.fails(exited(0, 1)), "restart 1 of 2");
    EXPECT_EQ(job.fails(exited(0, 1)), "restart 2 of 2");
    EXPECT_EQ(job.fails(exited(0, 1)), "restart 2 of 2 used up (--max-restarts)");
    EXPECT_EQ(job.history.restarts, 2);
}

// An operator has allowed fewer meanwhile.
TEST(RestartPolicy, SaysThatMoreAreUsedUpThanAreAllowedNow) {
    Job job{limits(1, 1, 2), {}, Reach::progressed};
    job.fails(exited(0, 1));
    job.fails(exited(0, 1));
    job.with.max_restarts = 1;
    EXPECT_EQ(job.fails(exited(0, 1)),
              "no restart: 2 are used up, and now 1 are allowed (ddpctl limits --max-restarts)");
}

TEST(RestartPolicy, ZeroMeansNone) {
    Job job{limits(1, 1, 0), {}, Reach::progressed};
    EXPECT_EQ(job.fails(exited(0, 1)), "no restart: --max-restarts is 0");
}

// The same error three times in a row, before any progress. Nine restarts are allowed, but the
// other six would only cost time.
TEST(RestartPolicy, Rule17g_SeesACrashLoopInThreeOfTheSameCause) {
    Job job{limits(1, 1, 9), {}, Reach::met};
    EXPECT_EQ(job.fails(exited(0, 1, "boom")), "restart 1 of 9");
    EXPECT_EQ(job.fails(exited(0, 1, "boom")), "restart 2 of 9");
    EXPECT_EQ(job.fails(exited(0, 1, "boom")),
              "crash loop: 3 generations in a row failed with the same cause and without progress "
              "(--crash-loop=N allows more; progress is a line on DDPRUN_PROGRESS_FD, or a minute "
              "of training)");
}

// All ranks raise the same exception, and another one is first each time. It is in the error file,
// or only in what Python has printed. Without any the rank counts.
TEST(RestartPolicy, Rule17h_TakesTheExceptionForTheCauseAndNotTheRank) {
    const auto in_a_row = [](const WorkerOutcome& first, const WorkerOutcome& second) {
        Job job{limits(1, 1, 9), {}, Reach::met};
        job.fails(first);
        job.fails(second);
        return job.history.in_a_row;
    };
    const auto raised = [](int rank, const std::string& exception) {
        WorkerOutcome failure = exited(rank, 1);
        failure.tail = {"Traceback (most recent call last):",
                        "  File \"train.py\", line 7, in main", exception};
        return failure;
    };
    EXPECT_EQ(in_a_row(exited(0, 1, "KeyError: 'x'"), exited(1, 1, "KeyError: 'x'")), 2);
    EXPECT_EQ(in_a_row(raised(0, "KeyError: 'x'"), raised(1, "KeyError: 'x'")), 2);
    EXPECT_EQ(in_a_row(raised(0, "KeyError: 'x'"), exited(1, 1, "KeyError: 'x'")), 2);
    EXPECT_EQ(in_a_row(raised(0, "KeyError: 'x'"), raised(0, "KeyError: 'y'")), 1);
    EXPECT_EQ(in_a_row(exited(0, 1), exited(1, 1)), 1);
}

// Five failures, each with another error, code or signal than the one before: no crash loop.
// Progress ends the count too, since a fault that comes only after hours is no crash loop.
TEST(RestartPolicy, CountsOnlyTheSameCauseInARow) {
    Job job{limits(1, 1, 9)};
    for (const WorkerOutcome& failure :
         {exited(0, 1, "a"), exited(0, 1, "b"), exited(0, 2, "b"), exited(1, 2), killed(1, 9)}) {
        job.fails(failure);
        EXPECT_EQ(job.history.in_a_row, 1) << failure.sentence;
    }
    job.fails(killed(1, 9));
    EXPECT_EQ(job.history.in_a_row, 2);
    job.reach = Reach::progressed;
    // Six restarts are used up by now.
    EXPECT_EQ(job.fails(killed(1, 9)), "restart 7 of 9");
    EXPECT_EQ(job.history.in_a_row, 0);
}

// Two of the same cause in a row: the third generation is cold.
TEST(RestartPolicy, Rule17k_StartsColdAfterTwoFailuresWithTheSameCause) {
    Job job{limits(1, 1, 9)};
    EXPECT_FALSE(starts_cold(job.history, job.with));
    job.fails(exited(2, 3));
    EXPECT_FALSE(starts_cold(job.history, job.with));
    job.fails(exited(2, 3));
    EXPECT_TRUE(starts_cold(job.history, job.with));
    job.fails(exited(2, 4));
    EXPECT_FALSE(starts_cold(job.history, job.with)) << "another cause";
    job.with.crash_loop = 0;
    job.fails(exited(2, 4));
    EXPECT_TRUE(starts_cold(job.history, job.with));
    job.reach = Reach::progressed;
    job.fails(exited(2, 4));
    EXPECT_FALSE(starts_cold(job.history, job.with));
}

// The default allows one failure of a cause. A script that reports nothing fails cold, and then
// warm with the same cause: a cold generation follows, and ends the job if it fails, too.
TEST(RestartPolicy, Rule17j_NoWarmStartEndsAJobAsACrashLoop) {
    for (const int crash_loop : {1, 2}) {
        Job job{limits(1, 1, 9)};
        job.with.crash_loop = crash_loop;
        if (crash_loop == 2) {
            EXPECT_EQ(job.fails(exited(2, 3)), "restart 1 of 9");
            EXPECT_FALSE(starts_cold(job.history, job.with));
        }
        WorkerOutcome warm = exited(2, 3);
        warm.warm = true;
        EXPECT_EQ(job.fails(warm), "restart " + std::to_string(crash_loop) + " of 9");
        EXPECT_TRUE(starts_cold(job.history, job.with));
        EXPECT_THAT(job.fails(exited(2, 3)),
                    StartsWith("crash loop: " + std::to_string(crash_loop + 1) + " generations"));
    }
}

// Nine equal failures use up the budget, and nothing else ends the job.
TEST(RestartPolicy, CrashLoopOfZeroIsOff) {
    Job job{limits(1, 1, 9)};
    job.with.crash_loop = 0;
    for (int i = 1; i <= 9; ++i)
        EXPECT_EQ(job.fails(exited(0, 1)), "restart " + std::to_string(i) + " of 9");
}

// Workers see a number as TORCHELASTIC_MAX_RESTARTS, never "auto".
TEST(RestartPolicy, TellsWorkersTheBudgetInNumbers) {
    EXPECT_EQ(restart_budget(kAutoRestarts), 3);
    EXPECT_EQ(restart_budget(0), 0);
    EXPECT_EQ(restart_budget(7), 7);
}
