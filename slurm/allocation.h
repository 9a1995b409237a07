// Which variables describe the Slurm step we are a task of: the environment as a map in, an
// Allocation out.
//
// Only a step counts: membership comes from SLURM_STEP_*, never from SLURM_JOB_NODELIST when the
// step's own list is there, since a step may run on a part of the job's nodes. A batch script looks
// like rank 0 of everything (PROCID 0, NODEID 0, NTASKS, even CUDA_VISIBLE_DEVICES); what tells it
// apart is that SLURM_STEP_ID is missing, or since 26.05 a reserved one, as that of the interactive
// step. launch_shape.h says what that means for the user. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace ddprun::slurm {

using Environment = std::map<std::string, std::string>;

// Where in Slurm this process runs.
enum class Context {
    none,   // no job: a login node, a workstation
    batch,  // the script that sbatch runs on the first node, without srun
    shell,  // a shell of salloc on the submit host: a job, but this host need not be one of its
            // nodes
    interactive,  // salloc's shell on the first node (a step with a reserved id)
    step,         // a task started by srun
};
Context context_of(const Environment& environment);

struct Allocation {
    std::string cluster;  // "" when not told
    std::string job_id;
    std::string step_id;
    std::vector<std::string> nodes;      // of the step, in the order of SLURM_NODEID
    std::vector<std::string> job_nodes;  // of the whole job; empty when not told
    std::vector<int> tasks_per_node;     // as long as nodes; empty when not told
    std::string distribution;            // of tasks over nodes, e.g. "block"; empty when not told
    int node_id = 0;                     // ours, an index of nodes
    int proc_id = 0;                     // of our task in the step
    int local_id = 0;                    // of our task on this node
    std::string node_name;               // nodes[node_id]
    std::optional<int> gpus_on_node;     // of the step on this node, not of the task
    // CUDA_VISIBLE_DEVICES: empty text is "none", unset may be "all".
    std::optional<std::string> visible_devices;
    std::optional<std::string> step_gpus;  // SLURM_STEP_GPUS, text
    std::optional<int> gpus_per_task;      // SLURM_GPUS_PER_TASK, without its type
    std::optional<int> cpus_on_node;
    std::optional<int> cpus_per_task;  // a request: may be visible without being in force
    std::vector<int> reserved_ports;   // SLURM_STEP_RESV_PORTS
    int restart_count = 0;
    std::optional<std::int64_t> end_time;  // Unix seconds, projected at the start; Slurm 23.02+
    std::string launch_node_address;       // where srun ran; never a place to meet
    std::string submit_directory;

    // The tasks on our node; 1 when not told.
    int tasks_here() const {
        return tasks_per_node.empty() ? 1 : tasks_per_node[static_cast<std::size_t>(node_id)];
    }
    // On the node that has most of them.
    int most_tasks() const {
        int most = 1;
        for (const int tasks : tasks_per_node) most = tasks > most ? tasks : most;
        return most;
    }
};

// nullopt when context_of() is not `step`. Possible errors: usage, naming the variable and the
// place in it.
Result<std::optional<Allocation>> read_allocation(const Environment& environment);

}  // namespace ddprun::slurm
