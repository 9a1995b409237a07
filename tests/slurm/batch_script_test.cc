// A job whose batch host is lost, as scontrol and squeue show it (Slurm 22.05, shortened).
#include "slurm/batch_script.h"

#include <gtest/gtest.h>

#include <string>

namespace ddprun::slurm {
namespace {

std::string shown(const std::string& nodes, const std::string& state = "RUNNING",
                  const std::string& batch = "1", const std::string& name = "train") {
    return "JobId=1003 JobName=" + name + "\n   JobState=" + state +
           " Reason=None Dependency=(null)\n   Requeue=1 Restarts=0 BatchFlag=" + batch +
           " Reboot=0 ExitCode=0:0\n   ReqNodeList=n9 ExcNodeList=(null)\n   NodeList=" + nodes +
           "\n   BatchHost=n1\n   NumNodes=2 NumCPUs=3\n   Command=/x BatchHost=n7 NodeList=n8\n";
}

TEST(BatchScript, IsLostWithItsHost) {
    EXPECT_EQ(batch_script(shown("n[2-3]")), BatchScript::lost);
    EXPECT_EQ(batch_script(shown("n10")), BatchScript::lost);
    EXPECT_EQ(batch_script(shown("n[1-3]")), BatchScript::there);
    EXPECT_EQ(batch_script(shown("m4,n[1,7]")), BatchScript::there);
}

TEST(BatchScript, IsNoneOfAJobThatEndsOrHasNone) {
    EXPECT_EQ(batch_script(shown("n[2-3]", "COMPLETING")), BatchScript::none);
    EXPECT_EQ(batch_script(shown("n[2-3]", "PENDING")), BatchScript::none);
    EXPECT_EQ(batch_script(shown("n[2-3]", "RUNNING", "0")), BatchScript::none) << "salloc";
}

TEST(BatchScript, IsNotGuessed) {
    for (const std::string& text :
         {std::string(), std::string("slurm_load_jobs error: Invalid job id specified\n"),
          shown("(null)"), shown("n[2-"), shown("")})
        EXPECT_NE(batch_script(text), BatchScript::lost) << text;
    EXPECT_EQ(batch_script(shown("n[1-3]", "RUNNING", "1", "a NodeList=n2 BatchHost=n1")),
              BatchScript::there);
}

TEST(OnlyStep, IsAloneButForSlurmsOwn) {
    EXPECT_TRUE(is_only_step("1003.0\n1003.batch\n1003.extern\n", "1003.0"));
    EXPECT_TRUE(is_only_step("", "1003.0"));
    EXPECT_FALSE(is_only_step("1003.0\n1003.1\n", "1003.0"));
    EXPECT_FALSE(is_only_step("1003.10\n", "1003.1"));
}

}  // namespace
}  // namespace ddprun::slurm
