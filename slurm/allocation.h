// Describes the Slurm step in which this process is a task: a map of environment variables in, an
// Allocation out. Pure.
//
// Only the step counts. Membership comes from SLURM_STEP_* and not from SLURM_JOB_NODELIST, because
// a step may run on only some nodes of its job.
//
// A batch script looks like a task: SLURM_PROCID, SLURM_NODEID and even CUDA_VISIBLE_DEVICES are
// set there. The difference is SLURM_STEP_ID: it is missing there, or since Slurm 26.05 it has a
// reserved value. The shell of an interactive step has a reserved value, too. launch_shape.h says
// what the user is told in these cases.
//
// Source: the section "OUTPUT ENVIRONMENT VARIABLES" of srun(1) and sbatch(1).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace ddprun::slurm {

using Environment = std::map<std::string, std::string>;

// In which part of Slurm this process runs.
enum class Context {
    none,   // no job: a login node or a workstation
    batch,  // the script that sbatch runs on the job's first node; srun did not start it
    // A shell that salloc started on the submit host. There is a job, but this host need not be one
    // of its nodes.
    shell,
    interactive,  // salloc's shell on the first node (a step with a reserved id)
    step,         // a task that srun started
};
Context context_of(const Environment& environment);

// The step as one of its tasks sees it. "Not told" means that Slurm did not set the variable.
struct Allocation {
    std::string cluster;  // empty when not told
    std::string job_id;
    std::string step_id;
    std::vector<std::string> nodes;      // of the step, in the order of SLURM_NODEID
    std::vector<std::string> job_nodes;  // of the whole job; empty when not told
    std::vector<int> tasks_per_node;     // one count for each of `nodes`; empty when not told
    std::string distribution;         // how tasks are dealt to nodes, e.g. "block"; empty: not told
    int node_id = 0;                  // index of our node in `nodes`
    int proc_id = 0;                  // number of our task in the step
    int local_id = 0;                 // number of our task on this node
    std::string node_name;            // nodes[node_id]
    std::optional<int> gpus_on_node;  // GPUs of the step on this node, not of the task
    // CUDA_VISIBLE_DEVICES. An empty text means no device. If it is not set, all devices may be
    // visible.
    std::optional<std::string> visible_devices;
    std::optional<std::string> step_gpus;  // SLURM_STEP_GPUS, as text
    std::optional<int> gpus_per_task;      // SLURM_GPUS_PER_TASK, without the GPU's type
    std::optional<int> cpus_on_node;
    // SLURM_CPUS_PER_TASK as requested. The step may have received another number.
    std::optional<int> cpus_per_task;
    std::vector<int> reserved_ports;  // SLURM_STEP_RESV_PORTS
    int restart_count = 0;            // how often Slurm has requeued this job
    bool batch_job = false;           // begun by sbatch: only such a job can go back into the queue
    // Unix seconds, as expected when the job started. Set since Slurm 23.02.
    std::optional<std::int64_t> end_time;
    // The host on which srun runs. It need not be a node of the job, so nodes must not meet there.
    std::string launch_node_address;
    std::string submit_directory;

    // The number of tasks on our node; 1 when not told.
    int tasks_here() const {
        return tasks_per_node.empty() ? 1 : tasks_per_node[static_cast<std::size_t>(node_id)];
    }
    // The largest number of tasks on one node.
    int most_tasks() const {
        int most = 1;
        for (const int tasks : tasks_per_node) most = tasks > most ? tasks : most;
        return most;
    }
};

// Returns nullopt when context_of() is not `step`. Possible errors: usage; the sentence names the
// variable and, in a list, the position.
Result<std::optional<Allocation>> read_allocation(const Environment& environment);

// A batch job whose script has started this process itself, without srun.
struct ScriptJob {
    std::string name;                      // cluster and number: "lab.8812"
    int restart_count = 0;                 // how often Slurm has requeued it
    std::optional<std::int64_t> end_time;  // as in an Allocation
};
// Nothing in any other context. What a worker of a job starts is not the script's, although it may
// have the variables of the script.
std::optional<ScriptJob> read_script_job(const Environment& environment);

}  // namespace ddprun::slurm
