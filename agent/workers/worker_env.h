// Builds the environment of a worker: ddprun's own environment, then the variables that torchrun
// sets, then those of ddprun. Slurm's variables are changed to the worker's place
// (slurm/worker_variables.h). Pure.
//
// Variables of the same name that an outer script exported (RANK, MASTER_ADDR, ...) are
// overwritten.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "slurm/worker_variables.h"

namespace ddprun::agent {

using Environment = std::map<std::string, std::string>;

// With it Python writes its functions when it gets a fatal signal.
inline constexpr const char* kFaultHandler = "PYTHONFAULTHANDLER";

// The place of one worker in one generation. Sizes count workers, but group sizes count hosts.
struct WorkerPlace {
    int rank = 0;
    int local_rank = 0;
    int world_size = 1;
    int local_world_size = 1;
    int group_rank = 0;
    int group_world_size = 1;
    bool equal_nodes = false;   // all hosts are known to have local_world_size workers
    bool task_of_host = false;  // it is its ddprun's only worker, one of several on the host
    std::string role = "default";
    int role_rank = 0;
    int role_world_size = 1;
    std::string master_addr;
    std::uint16_t master_port = 0;
    std::int64_t generation = 0;  // becomes TORCHELASTIC_RESTART_COUNT
    int max_restarts = 0;
    std::string run_id;
    std::string run_key;  // DDPRUN_RUN_KEY; empty: none
    bool use_agent_store = true;
    // Where the worker may write why it failed; empty: none.
    std::string error_file;
    // Where it can read that it is being stopped, and why; empty: none.
    std::string stop_file;
    // Where it can read that a snapshot is wanted; empty: none.
    std::string snapshot_file;
    std::optional<int> omp_num_threads;  // used only if the user has set none
    bool fault_handler = false;          // PYTHONFAULTHANDLER=1, unless the user has set it
    // The signals that ddprun handles, for TORCHELASTIC_SIGNALS_TO_HANDLE.
    std::string signal_names = "SIGTERM,SIGINT,SIGHUP,SIGQUIT";
    std::optional<int> progress_fd;  // becomes DDPRUN_PROGRESS_FD
    std::optional<int> events_fd;    // becomes DDPRUN_EVENTS_FD
    std::optional<int> pmi_fd;       // becomes PMI_FD; with it the worker is a rank of MPI
    Environment more;  // set over the others: the worker's device, if each has its own
    slurm::WorkerVariables slurm_env = slurm::WorkerVariables::rewrite;
};

// Returns "NAME=value", sorted by name, ready for execve().
std::vector<std::string> worker_environment(Environment base, const WorkerPlace& place);

}  // namespace ddprun::agent
