// What a folder proves of a job, and which of several jobs is meant.
#include "operator/ddpctl/found_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/operator/ddpctl/examples.h"

namespace ddprun::launcher {
namespace {

using rendezvous::Verdict;
using testing::HasSubstr;
using testing::Not;

TEST(FoundJob, StateIsWhatTheFolderProves) {
    EXPECT_EQ(state_of(ended_job("a", Verdict::succeeded, 0)), JobState::succeeded);
    EXPECT_EQ(state_of(ended_job("a", Verdict::worker_failed, 7)), JobState::failed);
    EXPECT_EQ(state_of(ended_job("a", Verdict::unavailable, 69)), JobState::failed);
    EXPECT_EQ(state_of(ended_job("a", Verdict::internal, 70)), JobState::failed);
    // After these Slurm may start the job again, and it goes on with this ledger.
    EXPECT_EQ(state_of(ended_job("a", Verdict::work_left, 75)), JobState::stopped);
    EXPECT_EQ(state_of(ended_job("a", Verdict::user_signal, 143)), JobState::stopped);
    EXPECT_EQ(state_of(running_job()), JobState::no_end);
    EXPECT_EQ(state_of(new_job("a")), JobState::no_entry);
    EXPECT_EQ(state_of(unreadable_job("a")), JobState::unreadable);
}

TEST(FoundJob, IsAmongTheSuspendedJobsOfSlurm) {
    EXPECT_TRUE(is_among(running_job("lab.8812.0"), "12\n8812\n"));
    EXPECT_TRUE(is_among(running_job("8812.0"), "8812"));
    EXPECT_FALSE(is_among(running_job("lab.88120.0"), "8812\n0\n"));
    EXPECT_FALSE(is_among(running_job("lab.8812.0"), "\n"));
}

TEST(FoundJob, OnlyItsOwnMarkSetsItAside) {
    EXPECT_TRUE(is_set_aside(running_job("lab.1.0-finished-0000000000000abc")));
    EXPECT_FALSE(is_set_aside(running_job("lab.1.0-finished-0000000000000abd")));
    EXPECT_FALSE(is_set_aside(running_job("lab.1.0")));
}

const std::vector<FoundJob> kFoundJobs = {running_job("lab.8812.0"), running_job("lab.8812.1"),
                                          running_job("lab.88.0"), running_job("7.mine"),
                                          running_job("lab.88.0-finished-0000000000000abc")};

std::string chosen(const std::vector<FoundJob>& jobs, const SlurmNames& slurm) {
    const auto job = choose_job(jobs, slurm, ".ddprun");
    return job ? job->name : job.error().sentence();
}

TEST(ChooseJob, TakesTheOneOfSlurm) {
    EXPECT_EQ(chosen(kFoundJobs, {"8812", "1"}), "lab.8812.1");
    EXPECT_EQ(chosen(kFoundJobs, {"88", ""}), "lab.88.0");
    // A shell within the job is another step.
    EXPECT_EQ(chosen(kFoundJobs, {"88", "5"}), "lab.88.0");
    EXPECT_EQ(chosen(kFoundJobs, {"7", ""}), "7.mine");
}

TEST(ChooseJob, TakesTheOnlyOne) {
    EXPECT_EQ(chosen({kFoundJobs[0]}, {}), "lab.8812.0");
    EXPECT_EQ(chosen({kFoundJobs[0]}, {"1", ""}), "lab.8812.0");
    // One that was set aside is over, and does not count beside another.
    EXPECT_EQ(chosen({kFoundJobs[2], kFoundJobs[4]}, {}), "lab.88.0");
    EXPECT_EQ(chosen({kFoundJobs[4]}, {}), "lab.88.0-finished-0000000000000abc");
}

TEST(ChooseJob, NamesThemIfSeveralFit) {
    EXPECT_EQ(chosen(kFoundJobs, {"8812", "-5"}),
              "2 jobs have ledgers here; choose one with --ledger=PATH: .ddprun/lab.8812.0, "
              ".ddprun/lab.8812.1");
    EXPECT_THAT(chosen(kFoundJobs, {}), HasSubstr("4 jobs"));
    EXPECT_THAT(chosen(kFoundJobs, {}), Not(HasSubstr("finished")));
    EXPECT_EQ(choose_job(kFoundJobs, {}, "").error().code(), ErrorCode::usage);
    EXPECT_THAT(chosen(std::vector<FoundJob>(20, kFoundJobs[0]), {}), HasSubstr(" and 12 more"));
}

TEST(ChooseJob, SaysWhereItLooked) {
    EXPECT_EQ(
        choose_job({}, {}, ".ddprun").error(),
        Error(ErrorCode::not_found,
              "no job has a ledger in .ddprun; name the job by its id in Slurm, or give its "
              "--ledger=PATH, --ledger=etcd:HOST:PORT or --rdzv-endpoint=HOST:PORT"));
}

// A job that runs is meant, not those that ended before it in the same folder. The step of Slurm in
// which ddpctl runs comes first all the same.
TEST(ChooseJob, OfOneThatMayRunRatherThanAnEndedOne) {
    const std::vector<FoundJob> jobs = {
        ended_job("lab.1.0", rendezvous::Verdict::succeeded, 0), running_job("lab.2.0"),
        ended_job("lab.3.0", rendezvous::Verdict::worker_failed, 1)};
    EXPECT_FALSE(choose_job(jobs, {}, ".ddprun"));
    const auto running = choose_job(jobs, {}, ".ddprun", Wanted::may_run);
    ASSERT_TRUE(running) << running.error();
    EXPECT_EQ(running->name, "lab.2.0");
    const auto own = choose_job(jobs, {"3", "0"}, ".ddprun", Wanted::may_run);
    ASSERT_TRUE(own) << own.error();
    EXPECT_EQ(own->name, "lab.3.0");
    EXPECT_FALSE(choose_job({jobs[0], jobs[2]}, {}, ".ddprun", Wanted::may_run)) << "both ended";
}

}  // namespace
}  // namespace ddprun::launcher
