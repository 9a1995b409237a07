// A job that waits in the queue of Slurm after a requeue (operator/ddpctl/queued_job.h).
#include "operator/ddpctl/queued_job.h"

#include <gtest/gtest.h>

#include "operator/ddpctl/status_text.h"
#include "tests/operator/ddpctl/examples.h"

namespace ddprun::launcher {
namespace {

constexpr const char* kListed =
    "12|12|N/A|Priority\n8812|8810_3|2026-11-29T14:36:00|BeginTime\n88120|88120|N/A|Resources\n";

TEST(QueuedJob, IsFoundByTheNumberOfItsLedger) {
    const auto queued = find_queued(running_job("lab.8812.0"), kListed);
    ASSERT_TRUE(queued);
    EXPECT_EQ(queued->spelled, "8810_3");
    EXPECT_EQ(queued_sentence(*queued),
              "job 8810_3 waits in Slurm's queue (BeginTime), and can start at "
              "2026-11-29T14:36:00");
    const auto other = find_queued(running_job("12.0"), kListed);
    ASSERT_TRUE(other);
    EXPECT_EQ(
        queued_sentence(*other),
        "job 12 waits in Slurm's queue (Priority), and Slurm does not know yet when it starts");
    EXPECT_FALSE(find_queued(running_job("lab.881.0"), kListed));
    EXPECT_FALSE(find_queued(running_job("lab.8812.0"), ""));
    EXPECT_FALSE(find_queued(running_job("lab.8812.0"), "squeue: error"));
}

TEST(QueuedJob, StatusShowsThatItIsPending) {
    const FoundJob job = ended_job("lab.8812.0", rendezvous::Verdict::work_left, 75);
    const auto status = queued_status(job, *find_queued(job, kListed), kToday);
    EXPECT_TRUE(is_queued(status));
    EXPECT_EQ(
        status_text(status),
        "job         lab.8812.0, led by no node now\n"
        "generation  4 has ended\n"
        "waits       PENDING: job 8810_3 waits in Slurm's queue (BeginTime), and can start at "
        "2026-11-29T14:36:00\n"
        "restarts    0 of 0 used\n");
}

}  // namespace
}  // namespace ddprun::launcher
