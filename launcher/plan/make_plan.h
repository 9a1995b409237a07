// Combines the user's options, Slurm's variables and the facts of this host into a plan (plan.h).
//
// The user's options have priority over Slurm, except for what Slurm knows better: the node's rank
// and the order of nodes. Everything that was concluded rather than given stands in the plan's
// `notes`, for the log. All checks of a layout happen here, before any socket is opened. Pure.
#pragma once

#include <optional>

#include "base/error.h"
#include "launcher/options/options.h"
#include "launcher/plan/host_facts.h"
#include "launcher/plan/plan.h"
#include "slurm/allocation.h"

namespace ddprun::launcher {

// Possible errors: usage, with the sentence that says which option to change.
Result<Plan> make_plan(const Options& options, const std::optional<slurm::Allocation>& allocation,
                       const HostFacts& host);

}  // namespace ddprun::launcher
