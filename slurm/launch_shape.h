// How ddprun was started here, and what to tell a user whose layout cannot work.
//
//   agent per node   srun --ntasks-per-node=1 ddprun ...       the way it is meant
//   task per GPU     srun --ntasks-per-node=4 ddprun ...       refused: each would start all
//   forgotten srun   ddprun ... in a script of several nodes   refused: the others would idle
//   login node       ddprun ... in salloc's shell              refused: not one of the job's hosts
//   alone            no job, a job of one node, an interactive shell on a node
//
// Pure. The sentences end in the line to write instead.
#pragma once

#include <optional>
#include <string>

#include "proto/error.h"
#include "slurm/allocation.h"

namespace ddprun::slurm {

struct LaunchShape {
    enum class Kind {
        agent_per_node,  // take part in the step
        alone,           // as outside Slurm
    };
    Kind kind = Kind::alone;
    std::string note;  // for the log; may be empty
};

// `one_node`: the user asked for one node in so many words (--standalone, --nnodes=1), which no
// layout contradicts. `allocation` is what read_allocation() gave for this environment. Possible
// errors: usage.
Result<LaunchShape> check_launch_shape(const Environment& environment,
                                       const std::optional<Allocation>& allocation, bool one_node);

}  // namespace ddprun::slurm
