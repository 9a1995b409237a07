// The table of Slurm's variables in a worker, and the function that applies it.
#include "slurm/worker_variables.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

namespace ddprun::slurm {
namespace {

using Environment = std::map<std::string, std::string>;
using Text = std::optional<std::string>;

// What a value may depend on: the worker's place, and the variables that ddprun itself received.
struct View {
    const WorkerTask& task;
    const Environment& inherited;
    Text of(const char* name) const {
        const auto found = inherited.find(name);
        return found == inherited.end() ? std::nullopt : Text(found->second);
    }
};

Text ntasks(const View& view) { return std::to_string(view.task.world_size); }
Text nnodes(const View& view) { return std::to_string(view.task.nodes); }

// Removed when the nodes differ: one number cannot describe them.
Text ntasks_per_node(const View& view) {
    if (!view.task.equal_nodes) return std::nullopt;
    return std::to_string(view.task.workers_here);
}

// Slurm's folded form: "4(x2)" means 4 tasks on each of 2 nodes.
Text tasks_per_node(const View& view) {
    auto count = ntasks_per_node(view);
    if (count && view.task.nodes > 1) *count += "(x" + std::to_string(view.task.nodes) + ")";
    return count;
}

// Ranks on this node are consecutive. With --task-per-worker other tasks hold them, in an order
// that this task does not know.
Text global_ids(const View& view) {
    if (view.task.of_srun) return std::nullopt;
    std::string ids;
    for (int i = 0; i < view.task.workers_here; ++i)
        ids += (i == 0 ? "" : ",") + std::to_string(view.task.first_rank_here + i);
    return ids;
}

// Programs start as many threads or data loaders as this variable says, so the workers of a task
// share its CPUs. A worker has at least one.
Text cpus_per_task(const View& view) {
    const Text whole = view.of("SLURM_CPUS_PER_TASK");
    if (!whole || view.task.of_srun) return whole;
    int cpus = 0;
    const auto [end, failure] = std::from_chars(whole->data(), whole->data() + whole->size(), cpus);
    if (failure != std::errc() || end != whole->data() + whole->size()) return std::nullopt;
    return std::to_string(std::max(1, cpus / view.task.workers_here));
}

// A program uses SLURM_NODEID as an index of this list. After a lost or a new node, the generation
// may have other nodes or another order. Then the list would be wrong, so it is removed.
Text node_list(const View& view) {
    const bool same = view.of("SLURM_STEP_NUM_NODES") == std::to_string(view.task.nodes) &&
                      view.of("SLURM_NODEID") == std::to_string(view.task.node_rank);
    return same ? view.of("SLURM_STEP_NODELIST") : std::nullopt;
}

// One line of the table in worker_variables.h.
struct Row {
    const char* name;
    Text (*value)(const View&);  // null: removed
};

constexpr Row kLayout[] = {
    {"SLURM_PROCID", [](const View& view) -> Text { return std::to_string(view.task.rank); }},
    {"SLURM_LOCALID",
     [](const View& view) -> Text { return std::to_string(view.task.local_rank); }},
    {"SLURM_NODEID", [](const View& view) -> Text { return std::to_string(view.task.node_rank); }},
    {"SLURM_NTASKS", ntasks},
    {"SLURM_NPROCS", ntasks},
    {"SLURM_STEP_NUM_TASKS", ntasks},
    {"SLURM_NNODES", nnodes},
    {"SLURM_STEP_NUM_NODES", nnodes},
    {"SLURM_NTASKS_PER_NODE", ntasks_per_node},
    {"SLURM_TASKS_PER_NODE", tasks_per_node},
    {"SLURM_STEP_TASKS_PER_NODE", tasks_per_node},
    {"SLURM_GTIDS", global_ids},
    {"SLURM_CPUS_PER_TASK", cpus_per_task},
    {"SLURM_STEP_NODELIST", node_list},
    // Repeats SLURM_CPUS_PER_TASK. Slurm's commands refuse to work when the two differ.
    {"SLURM_TRES_PER_TASK", nullptr},
    // These tell a program that srun started it. It would then ask srun and not use torchrun's
    // variables: idr_torch computes a MASTER_PORT at which nobody listens, and Open MPI ends
    // because it finds no PMI.
    {"SLURM_STEP_ID", nullptr},
    {"SLURM_STEPID", nullptr},
    {"SLURM_TASK_PID", nullptr},
    {"SLURM_STEP_LAUNCHER_PORT", nullptr},
    {"SLURM_SRUN_COMM_HOST", nullptr},
    {"SLURM_SRUN_COMM_PORT", nullptr},
    {"SLURM_MPI_TYPE", nullptr},
};

// Variables that programs take as the sign that they run in a Slurm job. Only `drop` removes them.
constexpr const char* kSignsOfJob[] = {"SLURM_JOB_ID", "SLURM_JOBID", "SLURM_JOB_NODELIST",
                                       "SLURM_NODELIST", "SLURM_JOB_NUM_NODES"};

// Variables of PMI and PMIx, the process managers of MPI. They describe one process for each node,
// which is ddprun, so all workers of a node would take the same MPI rank. PMIX_MCA_* are settings
// of the user and stay.
bool is_process_manager(std::string_view name) {
    if (name.starts_with("PMIX_MCA_")) return false;
    return std::ranges::any_of(
        std::initializer_list<std::string_view>{"PMI_", "PMI2_", "PMIX_", "SLURM_PMI"},
        [&](std::string_view prefix) { return name.starts_with(prefix); });
}

// With --task-per-worker, and as long as the world has all tasks of the step in Slurm's order,
// everything that srun told about the task is true for its worker.
bool world_is_step(const View& view) {
    return view.task.of_srun && view.of("SLURM_PROCID") == std::to_string(view.task.rank) &&
           view.of("SLURM_STEP_NUM_TASKS") == std::to_string(view.task.world_size);
}

// Outside a job there is nothing to rewrite, and setting these variables would look like a job.
bool in_job(const Environment& environment) {
    return std::ranges::any_of(std::initializer_list<const char*>{"SLURM_JOB_ID", "SLURM_JOBID"},
                               [&](const char* name) {
                                   const auto found = environment.find(name);
                                   return found != environment.end() && !found->second.empty();
                               });
}

}  // namespace

void set_worker_variables(Environment& environment, WorkerVariables mode, const WorkerTask& task) {
    if (mode == WorkerVariables::keep || !in_job(environment)) return;
    // A copy: the values below are computed from what ddprun received, not from what is rewritten
    // already.
    const Environment inherited = environment;
    std::erase_if(environment, [](const auto& entry) { return is_process_manager(entry.first); });
    const bool true_as_told = mode == WorkerVariables::rewrite && world_is_step({task, inherited});
    for (const Row& row : kLayout) {
        // What identifies the step is removed even then, for the reason given at SLURM_STEP_ID.
        if (true_as_told && row.value) continue;
        const Text value = mode == WorkerVariables::rewrite && row.value
                               ? row.value({task, inherited})
                               : std::nullopt;
        if (value)
            environment[row.name] = *value;
        else
            environment.erase(row.name);
    }
    if (mode == WorkerVariables::drop)
        for (const char* name : kSignsOfJob) environment.erase(name);
}

}  // namespace ddprun::slurm
