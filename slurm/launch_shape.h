// How ddprun was started here, and what to tell a user whose layout cannot work.
//
//   agent per node   srun --ntasks-per-node=1 ddprun ...       the way it is meant
//   task per worker  srun --ntasks-per-node=4 ddprun --task-per-worker ...
//   several tasks    srun --ntasks-per-node=4 ddprun ...       refused: each would start all
//   forgotten srun   ddprun ... in a script of several nodes   refused: the others would idle
//   login node       ddprun ... in salloc's shell              refused: not one of the job's hosts
//   alone            no job, a job of one node, an interactive shell on a node
//
// Pure. The sentences end in the line to write instead.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "slurm/allocation.h"

namespace ddprun::slurm {

struct LaunchShape {
    enum class Kind {
        in_step,  // take part in it
        alone,    // as outside Slurm
    };
    Kind kind = Kind::alone;
    std::string note;  // for the log; may be empty
};

// What the user asked for in so many words.
struct ShapeAsked {
    bool one_node = false;         // --standalone, --nnodes=1: no layout contradicts it
    bool task_per_worker = false;  // --task-per-worker
};

// `allocation` is what read_allocation() gave for this environment. Possible errors: usage, in all
// tasks of a step alike.
Result<LaunchShape> check_launch_shape(const Environment& environment,
                                       const std::optional<Allocation>& allocation,
                                       const ShapeAsked& asked);

}  // namespace ddprun::slurm
