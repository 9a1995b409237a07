// Tells the warm starts what they need to know of this node's workers before there are any.
#pragma once

#include <functional>

#include "agent/warm/warm_starts.h"
#include "agent/workers/worker_plan.h"

namespace ddprun::agent {

// `workers`: how many this node will have. `opens_recorder`: --flight-recorder.
warm::WarmStarts::Job warm_job(warm::Mode mode, bool opens_recorder, const WorkerPlan& plan,
                               int workers);

}  // namespace ddprun::agent
