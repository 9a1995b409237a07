// On which node each task of a step runs, computed from what Slurm tells one task. Pure.
#include "slurm/task_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddprun::slurm {
namespace {

// What task `proc_id` computes: it is the local one `local_id` of node `node`. The names of the
// nodes do not matter.
TaskLayout layout(const char* distribution, std::vector<int> tasks, int proc_id, int node,
                  int local_id) {
    Allocation allocation;
    allocation.nodes.resize(tasks.size());
    allocation.tasks_per_node = std::move(tasks);
    allocation.distribution = distribution;
    allocation.proc_id = proc_id, allocation.node_id = node, allocation.local_id = local_id;
    return layout_of(allocation);
}

// The layout in one line: " node/local id" for each task. "unknown:" means that the tasks are not
// in Slurm's order.
std::string text(const TaskLayout& layout) {
    std::string text = layout.in_order ? "" : "unknown:";
    for (const TaskPlace& task : layout.tasks)
        text += " " + std::to_string(task.node) + "/" + std::to_string(task.local_id);
    return text;
}

// As srun 22.05 deals five tasks to two nodes with room for four and one. A task that gets this
// wrong gives its worker the rank of another one. The part behind the colon ("cyclic:block") is
// about sockets and does not matter.
TEST(TaskLayout, FollowsFromTheCounts) {
    EXPECT_EQ(text(layout("block", {4, 1}, 4, 1, 0)), " 0/0 0/1 0/2 0/3 1/0");
    EXPECT_EQ(text(layout("cyclic", {4, 1}, 1, 1, 0)), " 0/0 1/0 0/1 0/2 0/3");
    EXPECT_EQ(text(layout("cyclic:block", {2, 2}, 2, 0, 1)), " 0/0 1/0 0/1 1/1");
    EXPECT_EQ(text(layout("", {2, 1}, 2, 1, 0)), " 0/0 0/1 1/0");
}

// Slurm does not tell the order of a host file or the size of a plane. In the third row the word
// says "block", but then task 1 would not be on node 1. The layout says "unknown" and still has
// every task once.
TEST(TaskLayout, IsNotGuessed) {
    EXPECT_EQ(text(layout("arbitrary", {1, 2}, 0, 1, 0)), "unknown: 0/0 1/0 1/1");
    EXPECT_EQ(text(layout("plane", {4, 1}, 0, 0, 0)), "unknown: 0/0 0/1 0/2 0/3 1/0");
    EXPECT_EQ(text(layout("block", {2, 2}, 1, 1, 0)), "unknown: 0/0 0/1 1/0 1/1");
}

}  // namespace
}  // namespace ddprun::slurm
