// What --task-per-worker makes of a plan: each task that srun starts on a host is a node of its own
// for the rendezvous, with one worker (rendezvous/model/node_name.h).
//
// Ranks follow SLURM_PROCID, which each node reports when it joins, so they are right with any
// distribution. The first task on the first host of the step leads, whatever its rank, because all
// tasks know its address. A task uses the CPUs and GPUs that Slurm bound it to, else its part by
// SLURM_LOCALID. Pure; used by make_plan.cc and its halves.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/options/options.h"
#include "launcher/plan/plan.h"
#include "slurm/allocation.h"

namespace ddprun::launcher {

// Turns a plan of hosts into a plan of tasks, where a host has several. Call it after the rest of
// the meeting is planned.
void tasks_as_nodes(Plan& plan, const Options& options, const slurm::Allocation& allocation);

// Plans whether each task on this host sees one GPU, and which one is its own. `visible`: number of
// GPUs that it sees. Possible errors: usage, with the srun option to change.
std::optional<Error> plan_task_gpus(Plan& plan, const slurm::Allocation& allocation, int visible);

// The number of CPUs of this task. If its mask holds all CPUs of the step, the mask is shared by
// all tasks (shares_cpus).
int cpus_of_task(const Plan& plan, const slurm::Allocation& allocation, int cpus_in_mask);
bool shares_cpus(const Plan& plan, const slurm::Allocation& allocation, int cpus_in_mask);

// The part of this task in what was dealt to all workers of the host.
template <class T>
std::vector<T> own_part(const Plan& plan, std::vector<T> dealt) {
    if (!plan.task || dealt.size() <= 1) return dealt;
    return {dealt.at(static_cast<std::size_t>(plan.task->local_id))};
}

}  // namespace ddprun::launcher
