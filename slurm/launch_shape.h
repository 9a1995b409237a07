// Decides from Slurm's variables how ddprun was started, and what to tell a user whose layout
// cannot work. Pure.
//
//   one task per node    srun --ntasks-per-node=1 ddprun ...     the normal way
//   one task per worker  srun --ntasks-per-node=4 ddprun --task-per-worker ...
//   several tasks        srun --ntasks-per-node=4 ddprun ...     refused: each would start all
//   forgotten srun       ddprun ... in a script of several nodes   refused: the others would idle
//   login node           ddprun ... in salloc's shell            refused: not a host of the job
//   one by one           ddprun --nnodes=2 --rdzv-endpoint=... on each node, by ssh or pdsh
//   alone                no job, a job of one node, or an interactive shell on a node
//
// Every sentence ends with the command line to use instead.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "slurm/allocation.h"

namespace ddprun::slurm {

struct LaunchShape {
    enum class Kind {
        in_step,  // take part in the step
        alone,    // work as outside Slurm
    };
    Kind kind = Kind::alone;
    std::string note;  // for the log; may be empty
};

// What the user's options say about the layout.
struct ShapeAsked {
    bool one_node = false;         // --standalone or --nnodes=1: every layout is fine
    bool meets = false;            // --nnodes and an endpoint: the user starts the other nodes
    bool task_per_worker = false;  // --task-per-worker
};

// `allocation` is the result of read_allocation() for this environment. Possible errors: usage. All
// tasks of a step come to the same result.
Result<LaunchShape> check_launch_shape(const Environment& environment,
                                       const std::optional<Allocation>& allocation,
                                       const ShapeAsked& asked);

}  // namespace ddprun::slurm
