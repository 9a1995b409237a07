// The half of the plan about the meeting: run id, range of nodes, their order, the endpoint, and
// which node leads at the start.
//
// Within a Slurm step the list of Slurm decides, and an endpoint from the user is used only where
// it can be right. Elsewhere the user's options decide, read as torchrun reads them. Pure; used by
// make_plan.cc only.
#pragma once

#include <optional>

#include "launcher/options/options.h"
#include "launcher/plan/host_facts.h"
#include "launcher/plan/plan.h"
#include "slurm/allocation.h"

namespace ddprun::launcher {

// Fills those members of `plan`. Possible errors: usage.
std::optional<Error> plan_meeting(Plan& plan, const Options& options,
                                  const std::optional<slurm::Allocation>& allocation,
                                  const HostFacts& host);

// Call it after plan_meeting(). Plans the address that other nodes get: --local-addr, --interface.
// Possible errors: usage.
std::optional<Error> plan_address(Plan& plan, const Options& options, const HostFacts& host);

// The ports to try for a step. They are equal on all its nodes, differ between steps that run at
// the same time, and are below the range from which Linux chooses ports itself (32768-60999).
std::vector<int> derived_ports(const slurm::Allocation& allocation);

}  // namespace ddprun::launcher
