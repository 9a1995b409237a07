// Builds the environment of a worker.
#include "agent/workers/worker_env.h"

#include <utility>

namespace ddprun::agent {
namespace {

// The worker's place in the words of slurm/worker_variables.h.
slurm::WorkerTask task_of(const WorkerPlace& place) {
    slurm::WorkerTask task;
    task.rank = place.rank;
    // With --virtual-local-rank the program sees one GPU and LOCAL_RANK is 0, so SLURM_LOCALID is
    // 0, too. A task that srun itself started with its GPU keeps its number.
    task.local_rank =
        place.more.contains("LOCAL_RANK") && !place.task_of_host ? 0 : place.local_rank;
    task.of_srun = place.task_of_host;
    task.world_size = place.world_size;
    task.nodes = place.group_world_size;
    task.node_rank = place.group_rank;
    // Ranks on a host are consecutive in the order of local ranks.
    task.first_rank_here = place.rank - place.local_rank;
    task.workers_here = place.local_world_size;
    task.equal_nodes = place.equal_nodes || place.group_world_size == 1;
    return task;
}

// What MPICH and its relatives read. An outer launcher's variables of PMI would lead elsewhere.
void set_pmi(Environment& env, const WorkerPlace& place) {
    std::erase_if(env, [](const auto& each) { return each.first.starts_with("PMI_"); });
    env["PMI_FD"] = std::to_string(*place.pmi_fd);
    env["PMI_RANK"] = std::to_string(place.rank);
    env["PMI_SIZE"] = std::to_string(place.world_size);
    env["MPI_LOCALRANKID"] = std::to_string(place.local_rank);
    env["MPI_LOCALNRANKS"] = std::to_string(place.local_world_size);
}

}  // namespace

std::vector<std::string> worker_environment(Environment base, const WorkerPlace& place) {
    // torchrun sets these variables for every worker, whatever was exported before.
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
    // A value that the user has set is kept for these, as with torchrun for the first two.
    env.try_emplace("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
    if (place.omp_num_threads) env.try_emplace("OMP_NUM_THREADS", number(*place.omp_num_threads));
    if (place.fault_handler) env.try_emplace(kFaultHandler, "1");
    // A ddprun inside another ddprun inherits these. They name the outer one's descriptor,
    // files and run, so they must not reach the workers.
    env.erase("DDPRUN_PROGRESS_FD");
    env.erase("DDPRUN_EVENTS_FD");
    env.erase("DDPRUN_STOP_FILE");
    env.erase("DDPRUN_SNAPSHOT_FILE");
    env.erase("DDPRUN_RUN_KEY");
    if (!place.run_key.empty()) env["DDPRUN_RUN_KEY"] = place.run_key;
    if (!place.snapshot_file.empty()) env["DDPRUN_SNAPSHOT_FILE"] = place.snapshot_file;
    if (!place.stop_file.empty()) env["DDPRUN_STOP_FILE"] = place.stop_file;
    if (place.progress_fd) env["DDPRUN_PROGRESS_FD"] = number(*place.progress_fd);
    if (place.events_fd) env["DDPRUN_EVENTS_FD"] = number(*place.events_fd);
    if (place.pmi_fd) set_pmi(env, place);
    // Set after the others, so that the device of a worker wins.
    for (const auto& [name, value] : place.more) env[name] = value;
    slurm::set_worker_variables(env, place.slurm_env, task_of(place));

    std::vector<std::string> lines;
    lines.reserve(env.size());
    for (const auto& [name, value] : env) lines.push_back(name + "=" + value);
    return lines;
}

}  // namespace ddprun::agent
