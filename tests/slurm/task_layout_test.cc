#include "slurm/task_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddprun::slurm {
namespace {

// Task `proc_id`, which is the local one `local_id` of node `node`.
TaskLayout layout(const char* distribution, std::vector<int> tasks, int proc_id, int node,
                  int local_id) {
    Allocation allocation;
    allocation.nodes.resize(tasks.size());
    allocation.tasks_per_node = std::move(tasks);
    allocation.distribution = distribution;
    allocation.proc_id = proc_id, allocation.node_id = node, allocation.local_id = local_id;
    return layout_of(allocation);
}

std::string text(const TaskLayout& layout) {
    std::string text = layout.in_order ? "" : "unknown:";
    for (const TaskPlace& task : layout.tasks)
        text += " " + std::to_string(task.node) + "/" + std::to_string(task.local_id);
    return text;
}

// As srun 22.05 deals five tasks to two nodes with room for four and one.
TEST(TaskLayout, FollowsFromTheCounts) {
    EXPECT_EQ(text(layout("block", {4, 1}, 4, 1, 0)), " 0/0 0/1 0/2 0/3 1/0");
    EXPECT_EQ(text(layout("cyclic", {4, 1}, 1, 1, 0)), " 0/0 1/0 0/1 0/2 0/3");
    EXPECT_EQ(text(layout("cyclic:block", {2, 2}, 2, 0, 1)), " 0/0 1/0 0/1 1/1");
    EXPECT_EQ(text(layout("", {2, 1}, 2, 1, 0)), " 0/0 0/1 1/0");
}

// A host file, a plane of unknown size, or a word that does not fit our own place.
TEST(TaskLayout, IsNotGuessed) {
    EXPECT_EQ(text(layout("arbitrary", {1, 2}, 0, 1, 0)), "unknown: 0/0 1/0 1/1");
    EXPECT_EQ(text(layout("plane", {4, 1}, 0, 0, 0)), "unknown: 0/0 0/1 0/2 0/3 1/0");
    EXPECT_EQ(text(layout("block", {2, 2}, 1, 1, 0)), "unknown: 0/0 0/1 1/0 1/1");
}

}  // namespace
}  // namespace ddprun::slurm
