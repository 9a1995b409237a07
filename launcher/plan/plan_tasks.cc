// Plans tasks as nodes (plan_tasks.h).
#include "launcher/plan/plan_tasks.h"

#include <algorithm>
#include <numeric>

#include "rendezvous/model/node_name.h"
#include "slurm/task_layout.h"

namespace ddprun::launcher {
namespace {

using slurm::Allocation;

// The number of tasks on `hosts` hosts: those with the fewest tasks, or the first ones.
int tasks_on(std::vector<int> counts, int hosts, bool fewest) {
    if (fewest) std::ranges::sort(counts);
    const auto end = counts.begin() + std::min<std::ptrdiff_t>(hosts, std::ssize(counts));
    return std::accumulate(counts.begin(), end, 0);
}

// The service ports of tasks that do not lead. The leader must find a port of the endpoint free.
// The first task of another host may try all of them. Other tasks try at most half of the ports
// that the user named, from the far end, since these are open in a firewall.
std::vector<int> ports_of_others(const Plan& plan, bool named) {
    if (!named) return {};
    const auto& ports = plan.endpoint.ports;
    return {ports.rbegin(), ports.rbegin() + static_cast<std::ptrdiff_t>(ports.size() / 2)};
}

}  // namespace

void tasks_as_nodes(Plan& plan, const Options& options, const Allocation& allocation) {
    // With one task on each host the plan of hosts is right as it is.
    if (allocation.most_tasks() == 1) return;
    const int hosts = static_cast<int>(allocation.nodes.size());
    const slurm::TaskLayout layout = slurm::layout_of(allocation);
    plan.task = Plan::Task{allocation.local_id, allocation.tasks_here(), layout.in_order, false};
    plan.node_name = rendezvous::task_node(allocation.node_name, allocation.local_id);
    plan.node_rank = allocation.proc_id;
    plan.limits.order.clear();
    for (const slurm::TaskPlace& task : layout.tasks)
        plan.limits.order.push_back(rendezvous::task_node(
            allocation.nodes[static_cast<std::size_t>(task.node)], task.local_id));
    // --nnodes counts hosts, the rendezvous counts tasks. Any MIN hosts must be enough, so MIN is
    // made from the hosts with the fewest tasks.
    plan.limits.max_nodes = plan.limits.max_nodes >= hosts
                                ? static_cast<int>(layout.tasks.size())
                                : tasks_on(allocation.tasks_per_node, plan.limits.max_nodes, false);
    plan.limits.min_nodes = std::min(
        plan.limits.max_nodes,
        tasks_on(allocation.tasks_per_node, plan.limits.min_nodes, plan.limits.min_nodes < hosts));
    // Several tasks must meet, even on one host.
    plan.standalone = false;
    const bool first = allocation.local_id == 0;
    if (hosts == 1) {
        // Nobody can come from another host, so nothing needs to be open to the network.
        plan.endpoint.host = "127.0.0.1";
        plan.lead = first ? Lead::yes : Lead::no;
    } else if (!first) {
        // Until here the plan is that of the host, so it says whether this host has the leader.
        plan.task->beside_leader = plan.lead == Lead::yes;
        plan.lead = Lead::no;
    }
    const bool named = options.ports || !allocation.reserved_ports.empty();
    plan.service_ports = first ? plan.endpoint.ports : ports_of_others(plan, named);
}

std::optional<Error> plan_task_gpus(Plan& plan, const Allocation& allocation, int visible) {
    if (!plan.task || visible == 0 || !allocation.gpus_on_node) return std::nullopt;
    const int held = *allocation.gpus_on_node, tasks = plan.task->tasks_here;
    const std::string count = std::to_string(tasks);
    // All tasks see all GPUs of the step, and there is not one for each of them.
    if (visible >= held && visible < tasks)
        return usage_error(count + " tasks on " + allocation.node_name + " for " +
                           std::to_string(visible) + (visible == 1 ? " GPU" : " GPUs") +
                           "; ask Slurm for --gpus-per-node=" + count +
                           " (if workers need no GPU: srun env CUDA_VISIBLE_DEVICES= ddprun …)");
    if (visible >= held) return std::nullopt;
    // Slurm has bound the task to some of the GPUs.
    // The tasks together see more GPUs than there are, so they share some. Slurm tells a task only
    // which GPUs it sees, not which one is meant for it.
    if (visible * tasks > held)
        return usage_error("each of the " + count + " tasks on " + allocation.node_name + " sees " +
                           std::to_string(visible) + " of the step's " + std::to_string(held) +
                           " GPUs, so nothing says which GPU belongs to which task; use srun "
                           "--gpus-per-task=1, or --gpu-bind=none");
    plan.task->own_gpus = true;
    return std::nullopt;
}

bool shares_cpus(const Plan& plan, const Allocation& allocation, int cpus_in_mask) {
    return plan.task && (!allocation.cpus_on_node || cpus_in_mask >= *allocation.cpus_on_node);
}

int cpus_of_task(const Plan& plan, const Allocation& allocation, int cpus_in_mask) {
    if (!shares_cpus(plan, allocation, cpus_in_mask)) return cpus_in_mask;
    // The requested number counts only within the part: with more threads the tasks would disturb
    // each other.
    const int part = std::max(1, cpus_in_mask / plan.task->tasks_here);
    return allocation.cpus_per_task ? std::clamp(*allocation.cpus_per_task, 1, part) : part;
}

}  // namespace ddprun::launcher
