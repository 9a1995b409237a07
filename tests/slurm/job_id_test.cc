// How a job is spelled for Slurm, and what is read in the output of scontrol and squeue (Slurm
// 22.05, shortened). Pure. A wrong spelling would requeue or cancel the brothers of an array's
// element.
#include "slurm/job_id.h"

#include <gtest/gtest.h>

#include <string>

namespace ddprun::slurm {
namespace {

using Environment = std::map<std::string, std::string>;

const JobId kArrayJob(Environment{{"SLURM_JOB_ID", "1003"}});

// Output of `scontrol show job` for a running batch job whose script began on n1. Other fields name
// other hosts: n9 was requested, and the user's own command line contains words that look like
// fields.
std::string shown(const std::string& nodes, const std::string& state = "RUNNING",
                  const std::string& batch = "1", const std::string& name = "train",
                  const std::string& ids = "JobId=1003", const std::string& restarts = "0") {
    return ids + " JobName=" + name + "\n   JobState=" + state +
           " Reason=None Dependency=(null)\n   Requeue=1 Restarts=" + restarts +
           " BatchFlag=" + batch +
           " Reboot=0 ExitCode=0:0\n   ReqNodeList=n9 ExcNodeList=(null)\n   NodeList=" + nodes +
           "\n   BatchHost=n1\n   NumNodes=2 NumCPUs=3\n   Command=/x BatchHost=n7 NodeList=n8\n\n";
}
// An element of array 1001 that Slurm has requeued so often.
std::string element(const std::string& number, const std::string& task,
                    const std::string& restarts = "0") {
    return shown("n1", "RUNNING", "1", "train",
                 "JobId=" + number + " ArrayJobId=1001 ArrayTaskId=" + task, restarts);
}
std::string spelled(const std::optional<ShownJob>& job) { return job ? job->id.spelled() : ""; }
JobId with_number(const std::string& number) {
    return JobId(Environment{{"SLURM_JOB_ID", number}});
}

// To Slurm's commands 1001 means all elements, so the element that has this id needs its task.
TEST(JobId, OfTheElementWithTheArraysIdHasItsTask) {
    const JobId job(
        {{"SLURM_JOB_ID", "1001"}, {"SLURM_ARRAY_JOB_ID", "1001"}, {"SLURM_ARRAY_TASK_ID", "2"}});
    EXPECT_EQ(job.spelled(), "1001_2");
    EXPECT_EQ(job.number(), "1001");
    EXPECT_EQ(kArrayJob.spelled(), "1003");
    EXPECT_EQ(JobId(Environment{{"SLURM_JOBID", "7"}}).spelled(), "7");
    EXPECT_EQ(JobId(Environment{}).spelled(), "");
}

// sbatch and salloc pass an element's variables on to the jobs that it submits. Such a job must not
// be taken for the element.
TEST(JobId, OfAJobThatAnElementHasSubmittedIsItsOwn) {
    const JobId job(
        {{"SLURM_JOB_ID", "1006"}, {"SLURM_ARRAY_JOB_ID", "1001"}, {"SLURM_ARRAY_TASK_ID", "2"}});
    EXPECT_EQ(job.spelled(), "1006");
    EXPECT_FALSE(job.is("1001_2"));
}

// A wrong value is no task.
TEST(JobId, TakesOnlyANumberForATask) {
    for (const char* task : {"", "-1", "2-3", "2%1", "x"})
        EXPECT_EQ(JobId({{"SLURM_JOB_ID", "1001"},
                         {"SLURM_ARRAY_JOB_ID", "1001"},
                         {"SLURM_ARRAY_TASK_ID", task}})
                      .spelled(),
                  "1001");
}

// Slurm prints an element as ARRAY_TASK, and a part of a heterogeneous job with its number.
TEST(JobId, IsFoundInWhatSlurmPrints) {
    const JobId job(
        {{"SLURM_JOB_ID", "1001"}, {"SLURM_ARRAY_JOB_ID", "1001"}, {"SLURM_ARRAY_TASK_ID", "2"}});
    EXPECT_TRUE(job.is("1001_2"));
    EXPECT_FALSE(job.is("1001_20"));
    EXPECT_FALSE(job.is("1001_[3-5]"));
    EXPECT_TRUE(with_number("1012").is("1012+1"));
    EXPECT_FALSE(with_number("1012").is("1013"));
    EXPECT_FALSE(JobId().is(""));
}

// scontrol shows all elements to who asks for 1001, in any order. The element is found by its own
// number and gets its task from there, also where its environment does not tell it.
TEST(ShownJob, IsThisElementAndNoBrother) {
    const std::string all =
        element("1003", "1", "1") + element("1001", "2", "5") + element("1002", "0", "3");
    const auto own = find_job(all, with_number("1001"));
    EXPECT_EQ(spelled(own), "1001_2");
    EXPECT_EQ(own->restarts, 5);
    EXPECT_TRUE(own->id.is("1001_2"));
    EXPECT_EQ(spelled(find_job(all, with_number("1002"))), "1001_0");
    EXPECT_EQ(spelled(find_job(shown("n1"), kArrayJob)), "1003");
}

// Without Slurm's word there is no job: another job, brothers only, brothers that wait in one part,
// two parts with one number, an error.
TEST(ShownJob, IsNotGuessed) {
    EXPECT_FALSE(find_job(shown("n1"), with_number("1001")));
    EXPECT_FALSE(find_job(element("1002", "0"), with_number("1001")));
    EXPECT_FALSE(find_job(element("1001", "2-5%2"), with_number("1001")));
    EXPECT_FALSE(find_job(shown("n1") + shown("n1"), kArrayJob));
    EXPECT_FALSE(find_job("slurm_load_jobs error: Invalid job id specified\n", kArrayJob));
    EXPECT_FALSE(find_job("", JobId()));
    // The user chooses the name.
    EXPECT_EQ(spelled(find_job(shown("n1", "RUNNING", "1", "x JobId=7 ArrayJobId=8 ArrayTaskId=9"),
                               kArrayJob)),
              "1003");
}

// The script and the requeues are those of the first part, which stands for the whole job.
TEST(ShownJob, OfAHeterogeneousJobHasParts) {
    const std::string both =
        shown("n[2-3]", "RUNNING", "1", "train", "JobId=1012 HetJobId=1012 HetJobOffset=0", "4") +
        shown("n4", "RUNNING", "0", "train", "JobId=1013 HetJobId=1012 HetJobOffset=1");
    const auto job = find_job(both, with_number("1012"));
    EXPECT_EQ(spelled(job), "1012");
    EXPECT_EQ(job->with_parts(), "1012,1013");
    EXPECT_EQ(job->script, BatchScript::lost);
    EXPECT_EQ(job->restarts, 4);
    EXPECT_EQ(spelled(find_job(both, with_number("1013"))), "1012") << "srun --jobid=1013";
    EXPECT_EQ(find_job(shown("n1"), kArrayJob)->with_parts(), "1003");
    EXPECT_EQ(find_job(element("1001", "2"), with_number("1001"))->with_parts(), "1001_2");
}

BatchScript script(const std::string& text) {
    const auto job = find_job(text, kArrayJob);
    return job ? job->script : BatchScript::none;
}

// Slurm takes a lost node out of NodeList and leaves BatchHost as it was. If ddprun missed that,
// the nodes of a finished job would stay allocated until the time limit.
TEST(BatchScript, IsLostWithItsHost) {
    EXPECT_EQ(script(shown("n[2-3]")), BatchScript::lost);
    EXPECT_EQ(script(shown("n10")), BatchScript::lost);  // n10 begins like n1
    EXPECT_EQ(script(shown("n[1-3]")), BatchScript::there);
    EXPECT_EQ(script(shown("m4,n[1,7]")), BatchScript::there);
}

// ddprun cancels a job only if the script is lost. A job that is ending, or waits in the queue
// after a requeue, must not be cancelled. A job of salloc has no script.
TEST(BatchScript, IsNoneOfAJobThatEndsOrHasNone) {
    EXPECT_EQ(script(shown("n[2-3]", "COMPLETING")), BatchScript::none);
    EXPECT_EQ(script(shown("n[2-3]", "PENDING")), BatchScript::none);
    EXPECT_EQ(script(shown("n[2-3]", "RUNNING", "0")), BatchScript::none) << "salloc";
}

// A wrong `lost` would cancel a healthy job, so unclear output is never `lost`: no nodes, and a
// list that is cut off. The user chooses the job's name, which may look like the fields of a lost
// host.
TEST(BatchScript, IsNotGuessed) {
    for (const char* nodes : {"(null)", "n[2-", ""})
        EXPECT_NE(script(shown(nodes)), BatchScript::lost) << nodes;
    EXPECT_EQ(script(shown("n[1-3]", "RUNNING", "1", "a NodeList=n2 BatchHost=n1")),
              BatchScript::there);
}

// A ddprun of an earlier allocation must not touch the job, which runs again under the same id.
TEST(ShownJob, SaysHowOftenItWasRequeued) {
    const auto restarts = [](const std::string& text) {
        return find_job(text, kArrayJob)->restarts;
    };
    EXPECT_EQ(restarts(shown("n1")), 0);
    EXPECT_EQ(restarts("JobId=1003 JobName=Restarts=9\n   Requeue=1 Restarts=12 BatchFlag=1\n"),
              12);
    EXPECT_EQ(restarts("JobId=1003\n   Restarts=1x \n"), std::nullopt);
}

// ddprun ends the whole job only if no other step is in it: another step may be useful work.
// Slurm's own steps (batch, extern) do not count. 1003.10 must not be taken for 1003.1.
TEST(OnlyStep, IsAloneButForSlurmsOwn) {
    const auto job = find_job(shown("n1"), kArrayJob);
    EXPECT_TRUE(job->has_only_step("1003.0\n1003.batch\n1003.extern\n", "0"));
    EXPECT_TRUE(job->has_only_step("", "0"));
    EXPECT_FALSE(job->has_only_step("1003.0\n1003.1\n", "0"));
    EXPECT_FALSE(job->has_only_step("1003.10\n", "1"));
    EXPECT_FALSE(job->has_only_step("1003.0\nsome error\n", "0"));
}

// squeue names an element's steps by its task. An element whose own step was not recognised kept
// its nodes. A brother's steps are not its own.
TEST(OnlyStep, OfAnElementIsNamedByItsTask) {
    const auto job = find_job(element("1001", "2"), with_number("1001"));
    EXPECT_TRUE(job->has_only_step("1001_2.0\n1001_2.batch\n", "0"));
    EXPECT_TRUE(job->has_only_step("1001_2.0\n1001_1.0\n1001_1.1\n1001_20.1\n", "0"));
    EXPECT_FALSE(job->has_only_step("1001_2.0\n1001_2.1\n", "0"));
}

// A step that runs on several parts is listed once for each. A step on another part is another one.
TEST(OnlyStep, OfAHeterogeneousJobMayBeOnAnyPart) {
    const auto job = find_job(
        shown("n1", "RUNNING", "1", "train", "JobId=1012 HetJobId=1012 HetJobOffset=0") +
            shown("n4", "RUNNING", "0", "train", "JobId=1013 HetJobId=1012 HetJobOffset=1"),
        with_number("1012"));
    EXPECT_TRUE(job->has_only_step("1012.2\n1012.batch\n1013.2\n", "2"));
    EXPECT_FALSE(job->has_only_step("1012.2\n1012.batch\n1013.1\n1013.2\n", "2"));
}

}  // namespace
}  // namespace ddprun::slurm
