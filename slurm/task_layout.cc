// Computes the place of every task from the counts per node and the distribution.
#include "slurm/task_layout.h"

#include <algorithm>

namespace ddprun::slurm {
namespace {

int tasks_on(const Allocation& allocation, std::size_t node) {
    return allocation.tasks_per_node.empty() ? 1 : allocation.tasks_per_node[node];
}

// --distribution=block: fill the first node, then the second, and so on.
std::vector<TaskPlace> block(const Allocation& allocation) {
    std::vector<TaskPlace> tasks;
    for (std::size_t node = 0; node < allocation.nodes.size(); ++node)
        for (int i = 0; i < tasks_on(allocation, node); ++i)
            tasks.push_back({static_cast<int>(node), i});
    return tasks;
}

// --distribution=cyclic: one task for each node in turn. A node that has all its tasks is skipped,
// so the order is by local id first, then by node.
std::vector<TaskPlace> cyclic(const Allocation& allocation) {
    std::vector<TaskPlace> tasks = block(allocation);
    std::ranges::sort(tasks, [](const TaskPlace& a, const TaskPlace& b) {
        return a.local_id != b.local_id ? a.local_id < b.local_id : a.node < b.node;
    });
    return tasks;
}

}  // namespace

TaskLayout layout_of(const Allocation& allocation) {
    const TaskPlace mine{allocation.node_id, allocation.local_id};
    // A check with the only place that is known for certain: our own. If the layout contradicts it,
    // the layout is wrong.
    const auto holds = [&](const std::vector<TaskPlace>& tasks) {
        const auto at = static_cast<std::size_t>(allocation.proc_id);
        return at < tasks.size() && tasks[at] == mine;
    };
    // The part after the colon, as in "cyclic:block", says how tasks are placed on the sockets of a
    // node. It does not matter here.
    const std::string name = allocation.distribution.substr(0, allocation.distribution.find(':'));
    std::vector<TaskPlace> tasks = name == "cyclic" ? cyclic(allocation) : block(allocation);
    const bool known = name == "block" || name == "cyclic" || name.empty();
    const bool in_order = known && holds(tasks);
    // If the order is not known, the block layout at least names every node and every local id
    // once.
    return {in_order ? std::move(tasks) : block(allocation), in_order};
}

}  // namespace ddprun::slurm
