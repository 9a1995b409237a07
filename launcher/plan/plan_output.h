// Where the workers' output goes: part of make_plan (plan.h). Pure.
#pragma once

#include "launcher/plan/plan.h"

namespace ddprun::launcher {

// Whatever was asked for that nothing here answers to (a rank that there is not, filters of lines
// that nobody prints, an unknown name in the template) becomes a warning; the job runs without it.
// plan.slots and plan.role must be known.
void plan_output(Plan& plan, const Options& options, const HostFacts& host);

}  // namespace ddprun::launcher
