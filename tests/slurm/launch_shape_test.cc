// How ddprun was started under Slurm, and what a user reads whose layout cannot work. Made-up
// environments; pure.
#include "slurm/launch_shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddprun::slurm {
namespace {

using Kind = LaunchShape::Kind;
using testing::HasSubstr;

// A step with so many tasks on each node. All else stays default, because only these counts decide
// here. No counts means that Slurm did not tell them.
Allocation step_with_tasks(std::vector<int> tasks) {
    Allocation allocation;
    allocation.nodes.resize(tasks.size());
    allocation.tasks_per_node = std::move(tasks);
    return allocation;
}

constexpr ShapeAsked kOneNode{.one_node = true};

// What a batch script sees: a job, a node name from slurmd, and no step id.
Environment job(const char* nodes) {
    return {{"SLURM_JOB_ID", "8812"}, {"SLURM_JOB_NUM_NODES", nodes}, {"SLURMD_NODENAME", "n1"}};
}

// One task on each node is the normal way. Missing counts are taken for it.
TEST(LaunchShape, AgentPerNode) {
    EXPECT_EQ(check_launch_shape({}, step_with_tasks({1, 1}), {})->kind, Kind::in_step);
    EXPECT_EQ(check_launch_shape({}, step_with_tasks({}), {})->kind, Kind::in_step);
}

// A script that used `srun python` keeps its --ntasks-per-node=4. Each of the four ddpruns would
// start all four workers. The sentence offers both lines that the user may have meant, and is the
// same in every task, so that the log is easy to read.
TEST(LaunchShape, SeveralTasksAreRefused) {
    const auto shape = check_launch_shape({}, step_with_tasks({4, 4}), {});
    ASSERT_FALSE(shape);
    EXPECT_EQ(shape.error(),
              Error(ErrorCode::usage,
                    "srun starts 4 ddprun processes on a node, but one ddprun starts all workers; "
                    "use srun --ntasks=2 --ntasks-per-node=1 ddprun --nproc-per-node=4 (and "
                    "--gpus-per-node=4 rather than --gpus-per-task), or say that each task is one "
                    "worker: ddprun --task-per-worker"));
    // The node with one task refuses too, with the largest count. If it started, it would wait for
    // the other node.
    EXPECT_THAT(check_launch_shape({}, step_with_tasks({1, 2}), {}).error().sentence(),
                HasSubstr("srun starts 2 ddprun processes on a node"));
}

// With --task-per-worker several tasks on a node are right. But each task must know the counts, and
// srun must have started it: in a batch script only one worker would start.
TEST(LaunchShape, TaskPerWorker) {
    const ShapeAsked asked{.task_per_worker = true};
    EXPECT_EQ(check_launch_shape({}, step_with_tasks({4, 2}), asked)->kind, Kind::in_step);
    EXPECT_EQ(check_launch_shape({}, step_with_tasks({1, 1}), asked)->kind, Kind::in_step);
    EXPECT_THAT(check_launch_shape({}, step_with_tasks({}), asked).error().sentence(),
                HasSubstr("SLURM_STEP_TASKS_PER_NODE is not set"));
    for (const Environment& outside : {Environment{}, job("1"), job("2")})
        EXPECT_THAT(check_launch_shape(outside, std::nullopt, asked).error().sentence(),
                    HasSubstr("use srun --ntasks-per-node=4 ddprun --task-per-worker"));
}

// A batch script of four nodes calls ddprun without srun. Three nodes would stay idle for the whole
// job, so this is refused unless the user asked for one node.
TEST(LaunchShape, ForgottenSrun) {
    auto shape = check_launch_shape(job("4"), std::nullopt, {});
    ASSERT_FALSE(shape);
    EXPECT_EQ(shape.error().code(), ErrorCode::usage);
    EXPECT_THAT(shape.error().sentence(), HasSubstr("job 8812 has 4 nodes"));
    EXPECT_THAT(shape.error().sentence(), HasSubstr("use srun --ntasks-per-node=1 ddprun"));
    EXPECT_EQ(check_launch_shape(job("4"), std::nullopt, kOneNode)->note,
              "ddprun runs on this host only, as requested, within job 8812");
    EXPECT_EQ(check_launch_shape(job("1"), std::nullopt, {})->note, "");
}

// The shell of salloc runs on the login node, which is shared and not part of the job. slurmd has
// not started this shell, so SLURMD_NODENAME is missing.
TEST(LaunchShape, LoginNode) {
    Environment environment = job("1");
    environment.erase("SLURMD_NODENAME");
    auto shape = check_launch_shape(environment, std::nullopt, {});
    ASSERT_FALSE(shape);
    EXPECT_THAT(shape.error().sentence(), HasSubstr("not a node of job 8812"));
    EXPECT_TRUE(check_launch_shape(environment, std::nullopt, kOneNode));
}

// A loop of ssh over the nodes, the first of which the batch script starts itself: the options say
// where the nodes meet. Srun may have been forgotten all the same, so a note says what happens.
TEST(LaunchShape, NodesThatTheUserStartsOneByOne) {
    const ShapeAsked asked{.meets = true};
    Environment shell = job("2");
    shell.erase("SLURMD_NODENAME");
    for (const Environment& environment : {job("4"), shell}) {
        const auto shape = check_launch_shape(environment, std::nullopt, asked);
        ASSERT_TRUE(shape) << shape.error().sentence();
        EXPECT_EQ(shape->kind, Kind::alone);
        EXPECT_THAT(shape->note, HasSubstr("waits at the endpoint for the other nodes"));
        EXPECT_THAT(shape->note, HasSubstr("of job 8812 use srun --ntasks-per-node=1 ddprun"));
    }
    EXPECT_EQ(check_launch_shape(job("1"), std::nullopt, asked)->note, "");
}

// No job at all, and an interactive shell on a node of the job. People try things in such a shell,
// so the hint about the other nodes is a note and not an error.
TEST(LaunchShape, Alone) {
    EXPECT_EQ(check_launch_shape({}, std::nullopt, {})->kind, Kind::alone);
    Environment environment = job("2");
    environment["SLURM_STEP_ID"] = "4294967290";  // Slurm's id for an interactive step
    EXPECT_THAT(check_launch_shape(environment, std::nullopt, {})->note,
                HasSubstr("for all 2 nodes"));
}

}  // namespace
}  // namespace ddprun::slurm
