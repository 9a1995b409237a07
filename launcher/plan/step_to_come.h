// What a dry run plans where srun has not been called yet: on a login node with --nnodes, in
// salloc's shell, or in a batch script of several nodes. A real start refuses there. The dry run
// shows the step that `srun ddprun` with these options would be, as far as it can be known. The
// facts of this host say nothing about the nodes then. Pure.
#pragma once

#include <optional>
#include <string>

#include "launcher/options/options.h"
#include "launcher/plan/host_facts.h"
#include "launcher/plan/plan.h"
#include "slurm/allocation.h"
#include "slurm/launch_shape.h"

namespace ddprun::launcher {

// A dry run lists the nodes one by one up to this number only; larger jobs are allowed.
inline constexpr int kMostNodesShown = 65536;  // in a range of Slurm's

slurm::ShapeAsked shape_asked(const Options& options);

struct StepToCome {
    // Of the first node; placeholders stand for unknown names.
    slurm::Allocation allocation;
    bool nodes_known = false;    // the names are known; else only their number
    bool workers_known = false;  // their number per node is known; else 1 is assumed
    std::string workers_note;    // how the number will be found at the start
    std::string warning;         // that srun must come first, and why
};

// Empty if a real start would not lack srun. Possible errors: usage (Slurm's variables).
Result<std::optional<StepToCome>> step_to_come(const Options& options,
                                               const Environment& environment);

// The same without what only a node can answer, to be planned for `step`.
Options without_host(Options options, const StepToCome& step);
HostFacts without_host(HostFacts host);

}  // namespace ddprun::launcher
