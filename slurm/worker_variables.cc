#include "slurm/worker_variables.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

namespace ddprun::slurm {
namespace {

using Environment = std::map<std::string, std::string>;
using Text = std::optional<std::string>;

// What a value may depend on: the worker's place and what ddprun itself was told.
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

Text ntasks_per_node(const View& view) {
    if (!view.task.equal_nodes) return std::nullopt;
    return std::to_string(view.task.workers_here);
}

Text tasks_per_node(const View& view) {
    auto count = ntasks_per_node(view);
    if (count && view.task.nodes > 1) *count += "(x" + std::to_string(view.task.nodes) + ")";
    return count;
}

Text global_ids(const View& view) {
    if (view.task.of_srun) return std::nullopt;  // those of other tasks, in any order
    std::string ids;
    for (int i = 0; i < view.task.workers_here; ++i)
        ids += (i == 0 ? "" : ",") + std::to_string(view.task.first_rank_here + i);
    return ids;
}

// Programs start so many threads or readers.
Text cpus_per_task(const View& view) {
    const Text whole = view.of("SLURM_CPUS_PER_TASK");
    if (!whole || view.task.of_srun) return whole;
    int cpus = 0;
    const auto [end, failure] = std::from_chars(whole->data(), whole->data() + whole->size(), cpus);
    if (failure != std::errc() || end != whole->data() + whole->size()) return std::nullopt;
    return std::to_string(std::max(1, cpus / view.task.workers_here));
}

// Its hosts are found by SLURM_NODEID; after a loss or a join the generation's nodes may be others,
// or stand in another order.
Text node_list(const View& view) {
    const bool same = view.of("SLURM_STEP_NUM_NODES") == std::to_string(view.task.nodes) &&
                      view.of("SLURM_NODEID") == std::to_string(view.task.node_rank);
    return same ? view.of("SLURM_STEP_NODELIST") : std::nullopt;
}

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
    // Says the same as SLURM_CPUS_PER_TASK, and Slurm takes no two that differ.
    {"SLURM_TRES_PER_TASK", nullptr},
    // By these a program knows that srun started it, and then asks srun rather than us: idr_torch
    // makes a MASTER_PORT of its own where nobody listens, Open MPI ends for lack of PMI.
    {"SLURM_STEP_ID", nullptr},
    {"SLURM_STEPID", nullptr},
    {"SLURM_TASK_PID", nullptr},
    {"SLURM_STEP_LAUNCHER_PORT", nullptr},
    {"SLURM_SRUN_COMM_HOST", nullptr},
    {"SLURM_SRUN_COMM_PORT", nullptr},
    {"SLURM_MPI_TYPE", nullptr},
};

// What programs take as the sign of a job, beyond that.
constexpr const char* kSignsOfJob[] = {"SLURM_JOB_ID", "SLURM_JOBID", "SLURM_JOB_NODELIST",
                                       "SLURM_NODELIST", "SLURM_JOB_NUM_NODES"};

// The process manager's side of MPI: it knows one process a node, with ddprun's rank. What a user
// sets for PMIx (PMIX_MCA_gds) is not of these.
bool is_process_manager(std::string_view name) {
    if (name.starts_with("PMIX_MCA_")) return false;
    return std::ranges::any_of(
        std::initializer_list<std::string_view>{"PMI_", "PMI2_", "PMIX_", "SLURM_PMI"},
        [&](std::string_view prefix) { return name.starts_with(prefix); });
}

bool world_is_step(const View& view) {
    return view.task.of_srun && view.of("SLURM_PROCID") == std::to_string(view.task.rank) &&
           view.of("SLURM_STEP_NUM_TASKS") == std::to_string(view.task.world_size);
}

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
    const Environment inherited = environment;
    std::erase_if(environment, [](const auto& entry) { return is_process_manager(entry.first); });
    const bool true_as_told = mode == WorkerVariables::rewrite && world_is_step({task, inherited});
    for (const Row& row : kLayout) {
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
