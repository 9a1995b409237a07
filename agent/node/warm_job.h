// Tells the warm starts what they need to know of this node's workers before there are any.
#pragma once

#include <functional>

#include "agent/warm/warm_starts.h"
#include "agent/workers/worker_plan.h"

namespace ddprun::agent {

// `workers`: how many this node will have.
warm::WarmStarts::Job warm_job(warm::Mode mode, const WorkerPlan& plan, int workers);

}  // namespace ddprun::agent
