// Which variables a worker sees: the agent's own, and over them exactly those that torchrun sets,
// and ours; of Slurm's, its own place (slurm/worker_variables.h).
//
// What an outer script exported under the same names (RANK, MASTER_ADDR, ...) is overwritten. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "slurm/worker_variables.h"

namespace ddprun::agent {

using Environment = std::map<std::string, std::string>;

// The place of one worker in one generation. All sizes count workers, but for the group's, which
// count hosts.
struct WorkerPlace {
    int rank = 0;
    int local_rank = 0;
    int world_size = 1;
    int local_world_size = 1;
    int group_rank = 0;
    int group_world_size = 1;
    bool equal_nodes = false;   // whether all hosts are known to have local_world_size workers
    bool task_of_host = false;  // the only worker of its ddprun, one of several on the host
    std::string role = "default";
    int role_rank = 0;
    int role_world_size = 1;
    std::string master_addr;
    std::uint16_t master_port = 0;
    std::int64_t generation = 0;  // TORCHELASTIC_RESTART_COUNT
    int max_restarts = 0;
    std::string run_id;
    bool use_agent_store = true;
    std::string error_file;  // path for the worker's own account of its death; empty: none
    std::string stop_file;   // where it reads that and why it is being stopped; empty: none
    std::optional<int> omp_num_threads;  // used only when the user has set none
    std::string signal_names = "SIGTERM,SIGINT,SIGHUP,SIGQUIT";  // that ddprun handles
    std::optional<int> progress_fd;  // DDPRUN_PROGRESS_FD; unset otherwise
    Environment more;                // set last: the worker's device, where each has its own
    slurm::WorkerVariables slurm_env = slurm::WorkerVariables::rewrite;
};

// "K=V", sorted by name.
std::vector<std::string> worker_environment(Environment base, const WorkerPlace& place);

}  // namespace ddprun::agent
