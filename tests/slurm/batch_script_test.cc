// Whether a job has lost the host of its batch script, from the output of scontrol and squeue
// (Slurm 22.05, shortened). Pure.
#include "slurm/batch_script.h"

#include <gtest/gtest.h>

#include <string>

namespace ddprun::slurm {
namespace {

// Output of `scontrol show job` for a running batch job whose script began on n1. Other fields name
// other hosts: n9 was requested, and the user's own command line contains words that look like
// fields.
std::string shown(const std::string& nodes, const std::string& state = "RUNNING",
                  const std::string& batch = "1", const std::string& name = "train") {
    return "JobId=1003 JobName=" + name + "\n   JobState=" + state +
           " Reason=None Dependency=(null)\n   Requeue=1 Restarts=0 BatchFlag=" + batch +
           " Reboot=0 ExitCode=0:0\n   ReqNodeList=n9 ExcNodeList=(null)\n   NodeList=" + nodes +
           "\n   BatchHost=n1\n   NumNodes=2 NumCPUs=3\n   Command=/x BatchHost=n7 NodeList=n8\n";
}

// Slurm takes a lost node out of NodeList and leaves BatchHost as it was. If ddprun missed that,
// the nodes of a finished job would stay allocated until the time limit.
TEST(BatchScript, IsLostWithItsHost) {
    EXPECT_EQ(batch_script(shown("n[2-3]")), BatchScript::lost);
    EXPECT_EQ(batch_script(shown("n10")), BatchScript::lost);  // n10 begins like n1
    EXPECT_EQ(batch_script(shown("n[1-3]")), BatchScript::there);
    EXPECT_EQ(batch_script(shown("m4,n[1,7]")), BatchScript::there);
}

// ddprun cancels a job only if the script is lost. A job that is ending, or waits in the queue
// after a requeue, must not be cancelled. A job of salloc has no script.
TEST(BatchScript, IsNoneOfAJobThatEndsOrHasNone) {
    EXPECT_EQ(batch_script(shown("n[2-3]", "COMPLETING")), BatchScript::none);
    EXPECT_EQ(batch_script(shown("n[2-3]", "PENDING")), BatchScript::none);
    EXPECT_EQ(batch_script(shown("n[2-3]", "RUNNING", "0")), BatchScript::none) << "salloc";
}

// A wrong `lost` would cancel a healthy job, so unclear output is never `lost`: none at all, an
// error message, no nodes, and a list that is cut off.
TEST(BatchScript, IsNotGuessed) {
    for (const std::string& text :
         {std::string(), std::string("slurm_load_jobs error: Invalid job id specified\n"),
          shown("(null)"), shown("n[2-"), shown("")})
        EXPECT_NE(batch_script(text), BatchScript::lost) << text;
    // The user chooses the job's name. Here the name contains words that look like the fields of a
    // lost host.
    EXPECT_EQ(batch_script(shown("n[1-3]", "RUNNING", "1", "a NodeList=n2 BatchHost=n1")),
              BatchScript::there);
}

// A ddprun of an earlier allocation must not touch the job, which runs again under the same id.
TEST(BatchScript, SaysHowOftenTheJobWasRequeued) {
    EXPECT_EQ(restarts_of(shown("n1")), 0);
    EXPECT_EQ(restarts_of("JobId=1 JobName=Restarts=9\n   Requeue=1 Restarts=12 BatchFlag=1\n"),
              12);
    EXPECT_EQ(restarts_of("slurm_load_jobs error: Invalid job id specified\n"), std::nullopt);
    EXPECT_EQ(restarts_of("JobId=1\n   Restarts=1x \n"), std::nullopt);
}

// ddprun ends the whole job only if no other step is in it: another step may be useful work.
// Slurm's own steps (batch, extern) do not count. 1003.10 must not be taken for 1003.1.
TEST(OnlyStep, IsAloneButForSlurmsOwn) {
    EXPECT_TRUE(is_only_step("1003.0\n1003.batch\n1003.extern\n", "1003.0"));
    EXPECT_TRUE(is_only_step("", "1003.0"));
    EXPECT_FALSE(is_only_step("1003.0\n1003.1\n", "1003.0"));
    EXPECT_FALSE(is_only_step("1003.10\n", "1003.1"));
}

}  // namespace
}  // namespace ddprun::slurm
