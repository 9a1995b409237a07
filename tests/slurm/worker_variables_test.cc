#include "slurm/worker_variables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddprun::slurm {
namespace {

using Environment = std::map<std::string, std::string>;
using enum WorkerVariables;
using testing::Contains;
using testing::Key;
using testing::Not;
using testing::UnorderedElementsAre;

// What srun gives ddprun, one task on each of two nodes; we are on the second.
Environment step_of_two() {
    return {{"SLURM_JOB_ID", "8812"},
            {"SLURM_JOBID", "8812"},
            {"SLURM_JOB_NODELIST", "n[1-2]"},
            {"SLURM_NODELIST", "n[1-2]"},
            {"SLURM_JOB_NUM_NODES", "2"},
            {"SLURM_STEP_ID", "0"},
            {"SLURM_STEPID", "0"},
            {"SLURM_STEP_NODELIST", "n[1-2]"},
            {"SLURM_STEP_NUM_NODES", "2"},
            {"SLURM_STEP_NUM_TASKS", "2"},
            {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"},
            {"SLURM_TASKS_PER_NODE", "1(x2)"},
            {"SLURM_NNODES", "2"},
            {"SLURM_NTASKS", "2"},
            {"SLURM_NPROCS", "2"},
            {"SLURM_NTASKS_PER_NODE", "1"},
            {"SLURM_PROCID", "1"},
            {"SLURM_LOCALID", "0"},
            {"SLURM_NODEID", "1"},
            {"SLURM_GTIDS", "1"},
            {"SLURM_TASK_PID", "77"},
            {"SLURM_CPUS_PER_TASK", "16"},
            {"SLURM_TRES_PER_TASK", "cpu:16"},
            {"SLURM_CPUS_ON_NODE", "16"},
            {"SLURM_SRUN_COMM_HOST", "10.0.0.1"},
            {"SLURM_SRUN_COMM_PORT", "4711"},
            {"SLURM_STEP_LAUNCHER_PORT", "4712"},
            {"SLURM_MPI_TYPE", "pmi2"},
            {"SLURMD_NODENAME", "n2"},
            {"HOME", "/h"}};
}

// Local rank 2 of the second of two nodes with four workers each.
WorkerTask sixth_of_eight() {
    WorkerTask task;
    task.rank = 6, task.local_rank = 2, task.world_size = 8;
    task.nodes = 2, task.node_rank = 1, task.first_rank_here = 4, task.workers_here = 4;
    return task;
}

Environment after(Environment environment, WorkerVariables mode, const WorkerTask& task) {
    set_worker_variables(environment, mode, task);
    return environment;
}

TEST(WorkerVariables, RewriteShowsTheWorkerAsATaskOfTheStep) {
    EXPECT_THAT(
        after(step_of_two(), rewrite, sixth_of_eight()),
        UnorderedElementsAre(
            std::pair("SLURM_JOB_ID", "8812"), std::pair("SLURM_JOBID", "8812"),
            std::pair("SLURM_JOB_NODELIST", "n[1-2]"), std::pair("SLURM_NODELIST", "n[1-2]"),
            std::pair("SLURM_JOB_NUM_NODES", "2"), std::pair("SLURM_STEP_NODELIST", "n[1-2]"),
            std::pair("SLURM_STEP_NUM_NODES", "2"), std::pair("SLURM_STEP_NUM_TASKS", "8"),
            std::pair("SLURM_STEP_TASKS_PER_NODE", "4(x2)"),
            std::pair("SLURM_TASKS_PER_NODE", "4(x2)"), std::pair("SLURM_NNODES", "2"),
            std::pair("SLURM_NTASKS", "8"), std::pair("SLURM_NPROCS", "8"),
            std::pair("SLURM_NTASKS_PER_NODE", "4"), std::pair("SLURM_PROCID", "6"),
            std::pair("SLURM_LOCALID", "2"), std::pair("SLURM_NODEID", "1"),
            std::pair("SLURM_GTIDS", "4,5,6,7"), std::pair("SLURM_CPUS_PER_TASK", "4"),
            std::pair("SLURM_CPUS_ON_NODE", "16"), std::pair("SLURMD_NODENAME", "n2"),
            std::pair("HOME", "/h")));
}

// Whatever part of its layout Slurm told, all of it is there; requests that nobody made are not.
TEST(WorkerVariables, RewriteSetsWhatSlurmDidNot) {
    WorkerTask task;
    task.rank = 1, task.local_rank = 1, task.world_size = 2, task.workers_here = 2;
    const Environment env = after({{"SLURM_JOBID", "8812"}}, rewrite, task);
    EXPECT_THAT(env, Contains(std::pair("SLURM_PROCID", "1")));
    EXPECT_THAT(env, Contains(std::pair("SLURM_NTASKS_PER_NODE", "2")));
    EXPECT_THAT(env, Contains(std::pair("SLURM_TASKS_PER_NODE", "2")));  // as Slurm has it: no (x1)
    EXPECT_THAT(env, Contains(std::pair("SLURM_GTIDS", "0,1")));
    EXPECT_THAT(env, Not(Contains(Key("SLURM_CPUS_PER_TASK"))));
    EXPECT_THAT(env, Not(Contains(Key("SLURM_STEP_NODELIST"))));
}

// The counts of the other nodes are not known; the rest is.
TEST(WorkerVariables, UnequalNodesHaveNoCountsANode) {
    WorkerTask task = sixth_of_eight();
    task.first_rank_here = 5, task.workers_here = 3, task.local_rank = 1;
    task.equal_nodes = false;
    const Environment env = after(step_of_two(), rewrite, task);
    for (const char* name :
         {"SLURM_TASKS_PER_NODE", "SLURM_STEP_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE"})
        EXPECT_THAT(env, Not(Contains(Key(name))));
    EXPECT_THAT(env, Contains(std::pair("SLURM_GTIDS", "5,6,7")));
    EXPECT_THAT(env, Contains(std::pair("SLURM_NTASKS", "8")));
    EXPECT_THAT(env, Contains(std::pair("SLURM_CPUS_PER_TASK", "5")));
}

// The other node is lost: we are alone, and the step's list has one host too many.
TEST(WorkerVariables, FollowASmallerGeneration) {
    WorkerTask task;
    task.rank = 3, task.local_rank = 3, task.world_size = 4, task.workers_here = 4;
    const Environment env = after(step_of_two(), rewrite, task);
    EXPECT_THAT(env, Contains(std::pair("SLURM_PROCID", "3")));
    EXPECT_THAT(env, Contains(std::pair("SLURM_NODEID", "0")));
    EXPECT_THAT(env, Contains(std::pair("SLURM_NNODES", "1")));
    EXPECT_THAT(env, Contains(std::pair("SLURM_STEP_NUM_NODES", "1")));
    EXPECT_THAT(env, Contains(std::pair("SLURM_NTASKS", "4")));
    EXPECT_THAT(env, Contains(std::pair("SLURM_TASKS_PER_NODE", "4")));
    EXPECT_THAT(env, Not(Contains(Key("SLURM_STEP_NODELIST"))));
    EXPECT_THAT(env, Contains(std::pair("SLURM_JOB_NODELIST", "n[1-2]")));  // the job's, as ever
}

// As many nodes as the step has, but this one has come back to another place than Slurm gave it.
TEST(WorkerVariables, TheNodeListGoesWhereItsOrderIsNotOurs) {
    WorkerTask task = sixth_of_eight();
    task.node_rank = 0, task.first_rank_here = 0, task.rank = 2;
    EXPECT_THAT(after(step_of_two(), rewrite, task), Not(Contains(Key("SLURM_STEP_NODELIST"))));
}

TEST(WorkerVariables, AWorkerHasOneCpuAtLeast) {
    Environment env = step_of_two();
    env["SLURM_CPUS_PER_TASK"] = "3";
    EXPECT_THAT(after(env, rewrite, sixth_of_eight()),
                Contains(std::pair("SLURM_CPUS_PER_TASK", "1")));
    env["SLURM_CPUS_PER_TASK"] = "many";
    EXPECT_THAT(after(env, rewrite, sixth_of_eight()), Not(Contains(Key("SLURM_CPUS_PER_TASK"))));
}

// Each worker would be the same process to them. A user's own settings stay.
TEST(WorkerVariables, ProcessManagersOfMpiAreForgotten) {
    Environment env = step_of_two();
    const Environment of_manager{{"PMI_RANK", "1"},        {"PMI_FD", "17"},
                                 {"PMI2_X", "1"},          {"PMIX_RANK", "1"},
                                 {"PMIX_SERVER_URI3", ""}, {"SLURM_PMI2_SRUN_PORT", "1"},
                                 {"SLURM_PMIXP_X", "1"}};
    env.insert(of_manager.begin(), of_manager.end());
    env["PMIX_MCA_gds"] = "hash";
    env["PMIND"] = "x";
    for (const WorkerVariables mode : {rewrite, drop}) {
        const Environment result = after(env, mode, sixth_of_eight());
        for (const auto& [name, value] : of_manager) EXPECT_THAT(result, Not(Contains(Key(name))));
        EXPECT_THAT(result, Contains(Key("PMIX_MCA_gds")));
        EXPECT_THAT(result, Contains(Key("PMIND")));
    }
}

TEST(WorkerVariables, DropLeavesNoSignOfAJob) {
    EXPECT_THAT(after(step_of_two(), drop, sixth_of_eight()),
                UnorderedElementsAre(std::pair("SLURM_CPUS_ON_NODE", "16"),
                                     std::pair("SLURMD_NODENAME", "n2"), std::pair("HOME", "/h")));
}

TEST(WorkerVariables, KeepTouchesNothing) {
    Environment env = step_of_two();
    env["PMI_RANK"] = "1";
    EXPECT_EQ(after(env, keep, sixth_of_eight()), env);
}

TEST(WorkerVariables, NothingIsTouchedOutsideAJob) {
    const Environment env{{"PMI_RANK", "1"}, {"SLURM_PROCID", "7"}, {"SLURM_JOB_ID", ""}};
    for (const WorkerVariables mode : {rewrite, keep, drop})
        EXPECT_EQ(after(env, mode, sixth_of_eight()), env);
}

// --task-per-worker, dealt out in turn: the second task of the second node.
Environment task_of_cyclic_step() {
    Environment env = step_of_two();
    env["SLURM_PROCID"] = "3", env["SLURM_LOCALID"] = "1";
    env["SLURM_STEP_NUM_TASKS"] = env["SLURM_NTASKS"] = env["SLURM_NPROCS"] = "5";
    env["SLURM_STEP_TASKS_PER_NODE"] = env["SLURM_TASKS_PER_NODE"] = "3,2";
    env["SLURM_GTIDS"] = "1,3";
    env.erase("SLURM_NTASKS_PER_NODE");
    return env;
}

WorkerTask that_task() {
    WorkerTask task;
    task.rank = 3, task.local_rank = 1, task.world_size = 5;
    task.nodes = 2, task.node_rank = 1, task.first_rank_here = 2, task.workers_here = 2;
    task.equal_nodes = false, task.of_srun = true;
    return task;
}

// All that srun says of such a task's place is true, also what ddprun could not conclude.
TEST(WorkerVariables, ATaskKeepsItsPlaceInTheWholeStep) {
    const Environment before = task_of_cyclic_step();
    const Environment env = after(before, rewrite, that_task());
    for (const char* name :
         {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_NTASKS", "SLURM_STEP_NUM_TASKS",
          "SLURM_STEP_TASKS_PER_NODE", "SLURM_GTIDS", "SLURM_CPUS_PER_TASK", "SLURM_STEP_NODELIST"})
        EXPECT_THAT(env, Contains(std::pair(name, before.at(name))));
    EXPECT_THAT(env, Not(Contains(Key("SLURM_STEP_ID"))));
    EXPECT_THAT(env, Not(Contains(Key("SLURM_TRES_PER_TASK"))));
    EXPECT_THAT(after(before, drop, that_task()), Not(Contains(Key("SLURM_PROCID"))));
}

// A task of the first node is lost: the ranks behind it move up.
TEST(WorkerVariables, ATaskFollowsASmallerGeneration) {
    WorkerTask task = that_task();
    task.rank = 2, task.world_size = 4, task.equal_nodes = true;
    const Environment env = after(task_of_cyclic_step(), rewrite, task);
    EXPECT_THAT(env, Contains(std::pair("SLURM_PROCID", "2")));
    EXPECT_THAT(env, Contains(std::pair("SLURM_LOCALID", "1")));
    EXPECT_THAT(env, Contains(std::pair("SLURM_STEP_NUM_TASKS", "4")));
    EXPECT_THAT(env, Contains(std::pair("SLURM_STEP_TASKS_PER_NODE", "2(x2)")));
    EXPECT_THAT(env, Contains(std::pair("SLURM_CPUS_PER_TASK", "16")));
    EXPECT_THAT(env, Not(Contains(Key("SLURM_GTIDS"))));
}

}  // namespace
}  // namespace ddprun::slurm
