// Plans where the workers' output goes: a part of make_plan (make_plan.h). Pure.
#pragma once

#include "launcher/options/options.h"
#include "launcher/plan/host_facts.h"
#include "launcher/plan/plan.h"

namespace ddprun::launcher {

// Options without an effect become warnings, and the job runs without them: a rank that does not
// exist, filters for lines that are not printed, an unknown name in the template. plan.slots,
// plan.limits, plan.node_name and plan.workers.role must be set before.
void plan_output(Plan& plan, const Options& options, const HostFacts& host);

}  // namespace ddprun::launcher
