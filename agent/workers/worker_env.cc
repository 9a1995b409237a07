#include "agent/workers/worker_env.h"

#include <utility>

namespace ddprun::agent {
namespace {

slurm::WorkerTask task_of(const WorkerPlace& place) {
    slurm::WorkerTask task;
    task.rank = place.rank;
    // With --virtual-local-rank the program sees one GPU, and LOCAL_RANK is 0. A task that srun
    // started alone with its GPU has its number all the same.
    task.local_rank =
        place.more.contains("LOCAL_RANK") && !place.task_of_host ? 0 : place.local_rank;
    task.of_srun = place.task_of_host;
    task.world_size = place.world_size;
    task.nodes = place.group_world_size;
    task.node_rank = place.group_rank;
    task.first_rank_here = place.rank - place.local_rank;
    task.workers_here = place.local_world_size;
    task.equal_nodes = place.equal_nodes || place.group_world_size == 1;
    return task;
}

}  // namespace

std::vector<std::string> worker_environment(Environment base, const WorkerPlace& place) {
    Environment& env = base;
    const auto number = [](auto value) { return std::to_string(value); };
    env["RANK"] = number(place.rank);
    env["LOCAL_RANK"] = number(place.local_rank);
    env["WORLD_SIZE"] = number(place.world_size);
    env["LOCAL_WORLD_SIZE"] = number(place.local_world_size);
    env["GROUP_RANK"] = number(place.group_rank);
    env["GROUP_WORLD_SIZE"] = number(place.group_world_size);
    env["ROLE_NAME"] = place.role;
    env["ROLE_RANK"] = number(place.role_rank);
    env["ROLE_WORLD_SIZE"] = number(place.role_world_size);
    env["MASTER_ADDR"] = place.master_addr;
    env["MASTER_PORT"] = number(place.master_port);
    env["TORCHELASTIC_RESTART_COUNT"] = number(place.generation);
    env["TORCHELASTIC_MAX_RESTARTS"] = number(place.max_restarts);
    env["TORCHELASTIC_RUN_ID"] = place.run_id;
    env["TORCHELASTIC_USE_AGENT_STORE"] = place.use_agent_store ? "True" : "False";
    env["TORCHELASTIC_ERROR_FILE"] = place.error_file;
    env["TORCHELASTIC_SIGNALS_TO_HANDLE"] = place.signal_names;
    // These two keep what the user has set.
    env.try_emplace("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
    if (place.omp_num_threads) env.try_emplace("OMP_NUM_THREADS", number(*place.omp_num_threads));
    // An outer ddprun's mean nothing here.
    env.erase("DDPRUN_PROGRESS_FD");
    env.erase("DDPRUN_STOP_FILE");
    if (!place.stop_file.empty()) env["DDPRUN_STOP_FILE"] = place.stop_file;
    if (place.progress_fd) env["DDPRUN_PROGRESS_FD"] = number(*place.progress_fd);
    for (const auto& [name, value] : place.more) env[name] = value;
    slurm::set_worker_variables(env, place.slurm_env, task_of(place));

    std::vector<std::string> lines;
    lines.reserve(env.size());
    for (const auto& [name, value] : env) lines.push_back(name + "=" + value);
    return lines;
}

}  // namespace ddprun::agent
