// Which delay a requeued job has, and when a shorter one may take its place. Pure. A wrong answer
// would let a job that fails at once be requeued every few seconds, or start one that its user has
// held.
#include "slurm/requeue_begin.h"

#include <gtest/gtest.h>

#include <string>

namespace ddprun::slurm {
namespace {

using std::chrono::seconds;

// Lines of `scontrol show config`. Other settings have the same words in their names or values.
std::string config(const std::string& auth, const std::string& scheduler) {
    return "Configuration data as of 2026-11-28T17:58:55\nAuthAltTypes = (null)\n"
           "AuthInfo                = " +
           auth +
           "\nCompleteWait            = 0 sec\n"
           "MailProg = AuthInfo=cred_expire=7\nSchedulerParameters     = " +
           scheduler + "\nSchedulerTimeSlice      = 30 sec\n";
}

TEST(RequeueDelay, IsThatOfTheSite) {
    EXPECT_EQ(requeue_delay(config("(null)", "(null)")), seconds(121));
    EXPECT_EQ(requeue_delay(""), seconds(121));
    EXPECT_EQ(requeue_delay(config("socket=/run/m,cred_expire=20", "(null)")), seconds(21));
    EXPECT_EQ(requeue_delay(config("cred_expire=20", "bf_interval=1, requeue_delay=5,x")),
              seconds(5));
    EXPECT_EQ(requeue_delay(config("cred_expire=", "requeue_delay=-1,my_requeue_delay=3")),
              seconds(121));
}

// The brake of a job that fails again and again.
TEST(RequeueBegin, DelayStaysAfterAShortLifeOrOneWithoutProgress) {
    EXPECT_EQ(brakes({seconds(121), true}, seconds(121)), "");
    EXPECT_EQ(brakes({seconds(120), true}, seconds(121)), "this run lasted only 120 s");
    EXPECT_EQ(brakes({seconds(5000), false}, seconds(121)), "its workers made no progress");
}

ShownJob shown_job(const std::string& priority, const std::string& dependency,
                   const std::string& eligible) {
    const std::string text =
        "JobId=7 JobName=a\n   UserId=root(0)\n   Priority=" + priority +
        " Nice=0\n   JobState=COMPLETING Reason=None Dependency=" + dependency +
        "\n   Requeue=1 Restarts=1\n   SubmitTime=1795888726 EligibleTime=" + eligible + "\n";
    return find_job(text, JobId(std::map<std::string, std::string>{{"SLURM_JOB_ID", "7"}})).value();
}

// What the user has said about the next life counts.
TEST(RequeueBegin, LeavesAloneWhatTheUserHasSet) {
    const seconds now(1795888800);
    EXPECT_EQ(is_kept(shown_job("4294901759", "(null)", "1795888726"), now), "");
    EXPECT_EQ(is_kept(shown_job("0", "(null)", "1795888726"), now), "it is held");
    EXPECT_EQ(is_kept(shown_job("1", "afterok:6(unfulfilled)", "1795888726"), now),
              "it waits for another job");
    EXPECT_EQ(is_kept(shown_job("1", "(null)", "1795988800"), now),
              "its begin is set to a later time");
    // A Slurm that prints times in another form.
    EXPECT_EQ(is_kept(shown_job("1", "(null)", "2026-11-28T17:58:46"), now), "");
}

}  // namespace
}  // namespace ddprun::slurm
