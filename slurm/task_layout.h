// Computes on which node each task of a step runs: SLURM_PROCID → node and number on the node.
// Pure.
//
// Slurm tells each task only its own place. With the usual distributions the places of the others
// follow from SLURM_STEP_TASKS_PER_NODE: block fills one node after the other, cyclic deals tasks
// to the nodes in turn. With plane and arbitrary (SLURM_HOSTFILE) they do not follow, because Slurm
// tells the tasks neither the plane size nor the order of the host file.
#pragma once

#include <vector>

#include "slurm/allocation.h"

namespace ddprun::slurm {

struct TaskPlace {
    int node = 0;      // SLURM_NODEID
    int local_id = 0;  // SLURM_LOCALID
    bool operator==(const TaskPlace&) const = default;
};

// All tasks of the step: in the order of SLURM_PROCID if `in_order` is true, else in the order of
// nodes.
struct TaskLayout {
    std::vector<TaskPlace> tasks;
    bool in_order = false;  // whether `tasks` is in the order of SLURM_PROCID
};
TaskLayout layout_of(const Allocation& allocation);

}  // namespace ddprun::slurm
