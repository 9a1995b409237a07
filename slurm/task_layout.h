// Which task of a step runs where: SLURM_PROCID → node and place on it.
//
// Each task is told its own place only. With the common distributions the others' follow from the
// counts of SLURM_STEP_TASKS_PER_NODE: block fills one node after the other, cyclic goes round.
// With plane and arbitrary (SLURM_HOSTFILE) they do not: the size of a plane and the order of the
// host file are told to nobody. Pure.
#pragma once

#include <vector>

#include "slurm/allocation.h"

namespace ddprun::slurm {

struct TaskPlace {
    int node = 0;      // SLURM_NODEID
    int local_id = 0;  // SLURM_LOCALID
    bool operator==(const TaskPlace&) const = default;
};

// All tasks of the step, in the order of SLURM_PROCID where that is known, else of nodes.
struct TaskLayout {
    std::vector<TaskPlace> tasks;
    bool in_order = false;  // of SLURM_PROCID
};
TaskLayout layout_of(const Allocation& allocation);

}  // namespace ddprun::slurm
