// Grid: the ranks of a job as rows and columns. A row is one replica of the model, cut into parts
// for neighbouring ranks; on GPUs they are on one node. A column is all ranks with one part, which
// average its gradients.
//
//   4 ranks, 2 parts:   part 0   part 1
//   replica 0           rank 0   rank 1
//   replica 1           rank 2   rank 3
#pragma once

#include <memory>

#include "trainer/group/process_group.h"

namespace example {

struct Grid {
    int parts = 1, replicas = 1;
    int part = 0, replica = 0;                              // of this rank
    std::unique_ptr<ddprun::trainer::ProcessGroup> row;     // its rank is the part
    std::unique_ptr<ddprun::trainer::ProcessGroup> column;  // its rank is the replica

    // All ranks call it. A world of one has the whole model. Errors: usage, if the ranks are no
    // multiple of the parts; those of split().
    static ddprun::Result<Grid> make(ddprun::trainer::ProcessGroup& world, int parts);
};

}  // namespace example
