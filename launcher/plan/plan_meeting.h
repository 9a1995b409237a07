// The half of a plan that says who meets whom and where: run id, node range, order, endpoint, and
// who leads at the start.
//
// Within a step of Slurm its own list decides, and an endpoint that the user gave is believed only
// where it can be right. Elsewhere the user's words decide, read as torchrun reads them. Pure; used
// by plan.cc alone.
#pragma once

#include <optional>

#include "launcher/plan/plan.h"

namespace ddprun::launcher {

// Fills those members of `plan`. Possible errors: usage.
std::optional<Error> plan_meeting(Plan& plan, const Options& options,
                                  const std::optional<slurm::Allocation>& allocation,
                                  const HostFacts& host);

// After it. The address that the others are told: --local-addr, --interface. Possible errors:
// usage.
std::optional<Error> plan_address(Plan& plan, const Options& options, const HostFacts& host);

// Ports to try for a step: the same on all its nodes, apart for steps that run at the same time,
// and below the ports that Linux gives out by itself (32768-60999).
std::vector<int> derived_ports(const slurm::Allocation& allocation);

}  // namespace ddprun::launcher
