// The half of the plan about the workers of one node: how many, with which GPUs, CPUs and threads,
// and what they run. Pure; used by make_plan only.
#pragma once

#include "launcher/options/options.h"
#include "launcher/plan/host_facts.h"
#include "launcher/plan/plan.h"
#include "slurm/allocation.h"

namespace ddprun::launcher {

// Possible errors of both: usage.
std::optional<Error> plan_slots(Plan& plan, const Options& options,
                                const std::optional<slurm::Allocation>& allocation,
                                const HostFacts& host);
// After plan_slots: --numa-binding, --virtual-local-rank, OMP_NUM_THREADS.
std::optional<Error> plan_shares(Plan& plan, const Options& options,
                                 const std::optional<slurm::Allocation>& allocation,
                                 const HostFacts& host);
void plan_command(Plan& plan, const Options& options, const HostFacts& host);

}  // namespace ddprun::launcher
