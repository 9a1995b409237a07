// What --task-per-worker makes of a plan: each task that srun started on a host is a node of its
// own for the rendezvous, with one worker (rendezvous/model/node_name.h).
//
// Ranks go by SLURM_PROCID, which each node says of itself when it joins; so they are right with
// any distribution. The task that all know leads: the first one on the first host of the step,
// whatever its rank. Of the host's CPUs and GPUs a task has what Slurm bound it to, else its part
// by SLURM_LOCALID. Pure; used by plan.cc and its halves.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/plan/plan.h"

namespace ddprun::launcher {

// Turns a plan of hosts into one of tasks, where a host has several. After the rest of the meeting.
void tasks_as_nodes(Plan& plan, const Options& options, const slurm::Allocation& allocation);

// Whether each task on this host sees a GPU and which is its own, `visible` being so many.
// Possible errors: usage, with the srun option to change.
std::optional<Error> plan_task_gpus(Plan& plan, const slurm::Allocation& allocation, int visible);

// The CPUs of this task, of those in its mask: a mask that has all of the step is that of all
// tasks.
int cpus_of_task(const Plan& plan, const slurm::Allocation& allocation, int cpus_in_mask);
bool shares_cpus(const Plan& plan, const slurm::Allocation& allocation, int cpus_in_mask);

// Of what was dealt to all workers of the host, this task's part.
template <class T>
std::vector<T> own_part(const Plan& plan, std::vector<T> dealt) {
    if (!plan.task || dealt.size() <= 1) return dealt;
    return {dealt.at(static_cast<std::size_t>(plan.task->local_id))};
}

}  // namespace ddprun::launcher
