// What a dry run plans for where srun is still to come: on a login node with --nnodes, in salloc's
// shell, in a batch script of several nodes. Without a dry run these refuse to start; a dry run
// shows the step that `srun ddprun` with the same options would be there, as far as it can be known.
// What this host has says nothing of the nodes then. Pure.
#pragma once

#include <optional>
#include <string>

#include "launcher/plan/plan.h"
#include "slurm/allocation.h"
#include "slurm/launch_shape.h"

namespace ddprun::launcher {

// Of more nodes nobody tells the ranks one by one, though as many as come may be allowed.
inline constexpr int kMostNodesShown = 65536;  // in a range of Slurm's

slurm::ShapeAsked shape_asked(const Options& options);

struct StepToCome {
    slurm::Allocation allocation;  // of the first node; names of what is not known yet stand for it
    bool nodes_known = false;      // their names; else their number alone
    bool workers_known = false;    // their number on each node; else it is taken for 1
    std::string workers_note;      // how it will be found then
    std::string warning;           // that srun is to be written in front, and why
};

// Nothing where a start would not lack srun. Possible errors: usage (Slurm's variables).
Result<std::optional<StepToCome>> step_to_come(const Options& options,
                                               const Environment& environment);

// The same without what only a node can answer, to be planned for `step`.
Options without_host(Options options, const StepToCome& step);
HostFacts without_host(HostFacts host);

}  // namespace ddprun::launcher
