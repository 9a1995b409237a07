// Computes the place of a worker from the place of its node.
#include "agent/workers/worker_plan.h"

#include <algorithm>
#include <iterator>

#include "agent/workers/run_key.h"

namespace ddprun::agent {

WorkerPlace place_of(const WorkerPlan& plan, const rendezvous::NodePlace& node, int index) {
    // If several nodes share a host (--task-per-worker), local ranks and group ranks count the
    // host, because this is what programs expect.
    const rendezvous::HostPlace host = node.host();
    WorkerPlace place;
    place.rank = node.rank_offset + index;
    place.local_rank = host.first_local_rank + index;
    place.world_size = node.world_size;
    place.local_world_size = host.workers;
    place.group_rank = host.rank;
    place.group_world_size = host.hosts;
    place.task_of_host = node.shared.has_value();
    place.role = plan.role;
    place.role_rank = node.role_rank_offset + index;
    place.role_world_size = node.role_world_size;
    place.equal_nodes = host.equal;
    place.master_addr = node.master_address;
    place.master_port = node.master_port;
    place.generation = node.generation.value;
    place.max_restarts = node.max_restarts;
    place.run_id = plan.run_id;
    place.run_key = run_key(plan.run);
    place.omp_num_threads = plan.omp_num_threads;
    place.fault_handler = plan.fault_handler;
    place.progress_fd = kProgressFd;
    place.events_fd = kEventsFd;
    if (plan.pmi) place.pmi_fd = kPmiFd;
    place.signal_names = plan.signal_names;
    place.slurm_env = plan.slurm_env;
    if (!plan.more.empty()) place.more = plan.more[static_cast<std::size_t>(index)];
    return place;
}

bool has_fault_handler(const WorkerPlan& plan) {
    const auto users = plan.environment.find(kFaultHandler);
    return users == plan.environment.end() ? plan.fault_handler : !users->second.empty();
}

// Two places that have nothing in common.
EnvironmentToCome environment_to_come(const WorkerPlan& plan) {
    const auto environment = [&plan](int number) {
        rendezvous::NodePlace node;
        node.generation = Generation{number};
        node.node_rank = number;
        node.nodes = node.slots = number + 1;
        node.rank_offset = node.role_rank_offset = number * node.slots;
        node.world_size = node.role_world_size = node.nodes * node.slots;
        node.master_address = "node" + std::to_string(number);
        node.master_port = static_cast<std::uint16_t>(number + 1);
        node.max_restarts = number;
        WorkerPlace place = place_of(plan, node, 0);
        place.error_file = place.stop_file = place.snapshot_file = "/" + std::to_string(number);
        std::vector<std::string> lines = worker_environment(plan.environment, place);
        std::ranges::sort(lines);
        return lines;
    };
    EnvironmentToCome found{environment(0), {}};
    const std::vector<std::string> other = environment(1);
    std::vector<std::string> different;
    std::ranges::set_symmetric_difference(found.example, other, std::back_inserter(different));
    for (const std::string& each : different) found.placed.insert(each.substr(0, each.find('=')));
    return found;
}

}  // namespace ddprun::agent
