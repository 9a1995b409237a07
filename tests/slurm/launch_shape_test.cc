#include "slurm/launch_shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddprun::slurm {
namespace {

using Kind = LaunchShape::Kind;
using testing::HasSubstr;

Allocation step_with_tasks(std::vector<int> tasks) {
    Allocation allocation;
    allocation.nodes.resize(tasks.size());
    allocation.tasks_per_node = std::move(tasks);
    return allocation;
}

Environment job(const char* nodes) {
    return {{"SLURM_JOB_ID", "8812"}, {"SLURM_JOB_NUM_NODES", nodes}, {"SLURMD_NODENAME", "n1"}};
}

// One task on each node is the way it is meant.
TEST(LaunchShape, AgentPerNode) {
    EXPECT_EQ(check_launch_shape({}, step_with_tasks({1, 1}), false)->kind, Kind::agent_per_node);
    EXPECT_EQ(check_launch_shape({}, step_with_tasks({}), false)->kind, Kind::agent_per_node);
}

// --ntasks-per-node=4 left over from `srun python`: refused on every node, with the line to write.
TEST(LaunchShape, TaskPerGpuIsRefused) {
    auto shape = check_launch_shape({}, step_with_tasks({4, 4}), false);
    ASSERT_FALSE(shape);
    EXPECT_EQ(
        shape.error(),
        Error(ErrorCode::usage,
              "srun starts 4 ddprun on this node, where one is to start all workers; use srun "
              "--ntasks-per-node=1 ddprun --nproc-per-node=4 (and --gpus-per-node=4 rather than "
              "--gpus-per-task)"));
    EXPECT_THAT(check_launch_shape({}, step_with_tasks({1, 2}), false).error().sentence(),
                HasSubstr("on a node of this step"));
}

// A script of several nodes without srun would leave all but one of them idle.
TEST(LaunchShape, ForgottenSrun) {
    auto shape = check_launch_shape(job("4"), std::nullopt, false);
    ASSERT_FALSE(shape);
    EXPECT_EQ(shape.error().code(), ErrorCode::usage);
    EXPECT_THAT(shape.error().sentence(), HasSubstr("job 8812 has 4 nodes"));
    EXPECT_THAT(shape.error().sentence(), HasSubstr("use srun --ntasks-per-node=1 ddprun"));
    EXPECT_EQ(check_launch_shape(job("4"), std::nullopt, true)->note,
              "runs on this host only, as asked, within job 8812");
    EXPECT_EQ(check_launch_shape(job("1"), std::nullopt, false)->note, "");
}

// salloc's shell is not one of the job's nodes.
TEST(LaunchShape, LoginNode) {
    Environment environment = job("1");
    environment.erase("SLURMD_NODENAME");
    auto shape = check_launch_shape(environment, std::nullopt, false);
    ASSERT_FALSE(shape);
    EXPECT_THAT(shape.error().sentence(), HasSubstr("not a node of job 8812"));
    EXPECT_TRUE(check_launch_shape(environment, std::nullopt, true));
}

// No job at all, and an interactive shell on a node.
TEST(LaunchShape, Alone) {
    EXPECT_EQ(check_launch_shape({}, std::nullopt, false)->kind, Kind::alone);
    Environment environment = job("2");
    environment["SLURM_STEP_ID"] = "4294967290";
    EXPECT_THAT(check_launch_shape(environment, std::nullopt, false)->note,
                HasSubstr("for all 2 nodes"));
}

}  // namespace
}  // namespace ddprun::slurm
