// Computes the place of a worker from the place of its node.
#include "agent/workers/worker_plan.h"

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
    place.omp_num_threads = plan.omp_num_threads;
    place.progress_fd = kProgressFd;
    place.signal_names = plan.signal_names;
    place.slurm_env = plan.slurm_env;
    if (!plan.more.empty()) place.more = plan.more[static_cast<std::size_t>(index)];
    return place;
}

}  // namespace ddprun::agent
