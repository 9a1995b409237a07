// Which of Slurm's variables a worker sees (--slurm-env), computed from what srun gave ddprun.
// Pure.
//
// Slurm's variables describe ddprun, which is one task on a node. A program that reads SLURM_PROCID
// before RANK then takes all workers of a node for one process, and hangs. Each test is a case in
// which the variables would be wrong.
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

// What srun gives ddprun with one task on each of two nodes. We are on the second node. All
// variables that ddprun changes, except PMI's, are in it, and a few that it must leave alone (HOME,
// SLURMD_NODENAME, SLURM_CPUS_ON_NODE).
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

// The worker with rank 6 and local rank 2: two nodes with four workers each, and we are on the
// second.
WorkerTask sixth_of_eight() {
    WorkerTask task;
    task.rank = 6, task.local_rank = 2, task.world_size = 8;
    task.nodes = 2, task.node_rank = 1, task.first_rank_here = 4, task.workers_here = 4;
    return task;
}

// The environment of the worker after the change.
Environment after(Environment environment, WorkerVariables mode, const WorkerTask& task) {
    set_worker_variables(environment, mode, task);
    return environment;
}

// The whole environment is compared, so a variable that is forgotten or added shows here. The
// worker sees a step of eight tasks and its share of the CPUs (16 for 4 workers). What leads to
// srun or PMI is gone: Open MPI and idr_torch would ask there and fail.
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

// Slurm has set only the job's id. The layout is set all the same, because all of it is known. The
// number of CPUs and the node list are not known, so they are not set.
TEST(WorkerVariables, RewriteSetsWhatSlurmDidNot) {
    WorkerTask task;
    task.rank = 1, task.local_rank = 1, task.world_size = 2, task.workers_here = 2;
    const Environment env = after({{"SLURM_JOBID", "8812"}}, rewrite, task);
    EXPECT_THAT(env, Contains(std::pair("SLURM_PROCID", "1")));
    EXPECT_THAT(env, Contains(std::pair("SLURM_NTASKS_PER_NODE", "2")));
    EXPECT_THAT(env, Contains(std::pair("SLURM_TASKS_PER_NODE", "2")));  // Slurm writes no (x1)
    EXPECT_THAT(env, Contains(std::pair("SLURM_GTIDS", "0,1")));
    EXPECT_THAT(env, Not(Contains(Key("SLURM_CPUS_PER_TASK"))));
    EXPECT_THAT(env, Not(Contains(Key("SLURM_STEP_NODELIST"))));
}

// The other node has five workers and this one three. A node does not know the counts of the
// others, so the variables with a count for each node go. The 16 CPUs are shared by three: 5 each.
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

// The other node is lost, and this one goes on alone. Programs use SLURM_NODEID as an index of the
// step's node list, which has one host too many now. So the list goes. The job's list stays,
// because it is about the job.
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
    EXPECT_THAT(env, Contains(std::pair("SLURM_JOB_NODELIST", "n[1-2]")));
}

// The number of nodes is the step's, but this node has another place than Slurm gave it. The list
// would name the wrong host for each node.
TEST(WorkerVariables, TheNodeListGoesWhereItsOrderIsNotOurs) {
    WorkerTask task = sixth_of_eight();
    task.node_rank = 0, task.first_rank_here = 0, task.rank = 2;
    EXPECT_THAT(after(step_of_two(), rewrite, task), Not(Contains(Key("SLURM_STEP_NODELIST"))));
}

// Three CPUs for four workers. Programs start as many threads as this variable says, so it must not
// be 0. A value that is no number cannot be shared, and is removed.
TEST(WorkerVariables, AWorkerHasOneCpuAtLeast) {
    Environment env = step_of_two();
    env["SLURM_CPUS_PER_TASK"] = "3";
    EXPECT_THAT(after(env, rewrite, sixth_of_eight()),
                Contains(std::pair("SLURM_CPUS_PER_TASK", "1")));
    env["SLURM_CPUS_PER_TASK"] = "many";
    EXPECT_THAT(after(env, rewrite, sixth_of_eight()), Not(Contains(Key("SLURM_CPUS_PER_TASK"))));
}

// PMI and PMIx describe ddprun, so all workers of a node would take the same MPI rank. The
// variables of the user stay: PMIX_MCA_* are settings, and PMIND only begins like one of them.
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

// --slurm-env=drop is for programs that must not notice Slurm. Only variables of the host stay.
TEST(WorkerVariables, DropLeavesNoSignOfAJob) {
    EXPECT_THAT(after(step_of_two(), drop, sixth_of_eight()),
                UnorderedElementsAre(std::pair("SLURM_CPUS_ON_NODE", "16"),
                                     std::pair("SLURMD_NODENAME", "n2"), std::pair("HOME", "/h")));
}

// --slurm-env=keep gives a worker exactly what ddprun got, PMI included.
TEST(WorkerVariables, KeepTouchesNothing) {
    Environment env = step_of_two();
    env["PMI_RANK"] = "1";
    EXPECT_EQ(after(env, keep, sixth_of_eight()), env);
}

// An empty job id is no job: containers pass empty variables on. Values that the user has set by
// hand stay.
TEST(WorkerVariables, NothingIsTouchedOutsideAJob) {
    const Environment env{{"PMI_RANK", "1"}, {"SLURM_PROCID", "7"}, {"SLURM_JOB_ID", ""}};
    for (const WorkerVariables mode : {rewrite, keep, drop})
        EXPECT_EQ(after(env, mode, sixth_of_eight()), env);
}

// --task-per-worker with five tasks on two nodes, dealt in turn: we are the second task of the
// second node, number 3.
Environment task_of_cyclic_step() {
    Environment env = step_of_two();
    env["SLURM_PROCID"] = "3", env["SLURM_LOCALID"] = "1";
    env["SLURM_STEP_NUM_TASKS"] = env["SLURM_NTASKS"] = env["SLURM_NPROCS"] = "5";
    env["SLURM_STEP_TASKS_PER_NODE"] = env["SLURM_TASKS_PER_NODE"] = "3,2";
    env["SLURM_GTIDS"] = "1,3";
    env.erase("SLURM_NTASKS_PER_NODE");
    return env;
}

// The worker of that task. Its rank is srun's number, so the ranks of a node are not consecutive,
// and first_rank_here means nothing.
WorkerTask that_task() {
    WorkerTask task;
    task.rank = 3, task.local_rank = 1, task.world_size = 5;
    task.nodes = 2, task.node_rank = 1, task.first_rank_here = 2, task.workers_here = 2;
    task.equal_nodes = false, task.of_srun = true;
    return task;
}

// The world is the whole step, so all that srun says of this task's place is true, also what ddprun
// could not compute (the counts, the list of ids). Only what identifies the step to srun goes.
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

// A task of the first node is lost, and the ranks behind it move up. Now srun's words are wrong and
// the values follow the generation. SLURM_GTIDS goes, because this task does not know the new ranks
// of the others.
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
