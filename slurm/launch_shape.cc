// Decides whether the layout of a launch can work, and writes the sentence for the user.
#include "slurm/launch_shape.h"

#include <charconv>

#include "slurm/job_id.h"

namespace ddprun::slurm {
namespace {

// The number of nodes that the batch script sees; 1 when it is not set or not a number.
int nodes_of_job(const Environment& environment) {
    for (const char* name : {"SLURM_JOB_NUM_NODES", "SLURM_NNODES"}) {
        auto entry = environment.find(name);
        if (entry == environment.end()) continue;
        int count = 0;
        const std::string& text = entry->second;
        auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), count);
        if (failure == std::errc() && end == text.data() + text.size() && count > 0) return count;
    }
    return 1;
}

std::string job_name(const Environment& environment) {
    const JobId job(environment);
    return job.spelled().empty() ? "this job" : "job " + job.spelled();
}

// One task on a node is the normal case. Several tasks are accepted only with --task-per-worker,
// because without it each task would start all workers of the node.
Result<LaunchShape> within_step(const Allocation& allocation, const ShapeAsked& asked) {
    const int most = allocation.most_tasks();
    // Without the counts this task cannot know how many workers its host has.
    if (asked.task_per_worker && allocation.tasks_per_node.empty())
        return usage_error(
            "--task-per-worker: SLURM_STEP_TASKS_PER_NODE is not set within this step; "
            "does --export or a container drop Slurm's variables?");
    if (most == 1 || asked.task_per_worker) return LaunchShape{LaunchShape::Kind::in_step, ""};
    const std::string count = std::to_string(most);
    return usage_error(
        "srun starts " + count +
        " ddprun processes on a node, but one ddprun starts all workers; use srun --ntasks=" +
        std::to_string(allocation.nodes.size()) +
        " --ntasks-per-node=1 ddprun --nproc-per-node=" + count + " (and --gpus-per-node=" + count +
        " rather than --gpus-per-task), or say that each task is one worker: ddprun "
        "--task-per-worker");
}

}  // namespace

Result<LaunchShape> check_launch_shape(const Environment& environment,
                                       const std::optional<Allocation>& allocation,
                                       const ShapeAsked& asked) {
    if (allocation) return within_step(*allocation, asked);
    if (asked.task_per_worker)
        return usage_error(
            "--task-per-worker: each task that srun starts runs one worker, but srun did not start "
            "this ddprun; use srun --ntasks-per-node=4 ddprun --task-per-worker …, or leave the "
            "option out");
    Context context = context_of(environment);
    LaunchShape alone;
    if (context == Context::none) return alone;
    int nodes = nodes_of_job(environment);
    std::string job = job_name(environment), count = std::to_string(nodes);
    // The user wants only this host, so there is no layout to check. The note says that the other
    // nodes of the job stay idle.
    if (asked.one_node) {
        if (nodes > 1 || context == Context::shell)
            alone.note = "ddprun runs on this host only, as requested, within " + job;
        return alone;
    }
    // The user has said where the nodes meet, and starts the others by other means (ssh, pdsh, a
    // step of the other nodes). If he has only forgotten srun, the note tells what is waited for.
    if (asked.meets) {
        if (nodes > 1 || context == Context::shell)
            alone.note =
                "ddprun runs on this host only, and waits at the endpoint for the other nodes of "
                "--nnodes, which must be started on theirs; to start on all nodes of " +
                job + " use srun --ntasks-per-node=1 ddprun …";
        return alone;
    }
    // salloc's shell usually runs on a login node, which does not belong to the job.
    if (context == Context::shell)
        return usage_error(
            "this is the shell of salloc, not a node of " + job +
            "; use srun --ntasks-per-node=1 ddprun … (or --standalone for this host)");
    if (nodes == 1) return alone;
    // In an interactive shell people try things on one node, so this is a note and no error.
    if (context == Context::interactive) {
        alone.note = "ddprun runs on this node only; for all " + count + " nodes of " + job +
                     " use srun --overlap --ntasks-per-node=1 ddprun …";
        return alone;
    }
    return usage_error(job + " has " + count +
                       " nodes, but ddprun runs on this one only: srun is missing; use srun "
                       "--ntasks-per-node=1 ddprun … (or --standalone for one node)");
}

}  // namespace ddprun::slurm
