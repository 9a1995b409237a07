// Tells the warm starts and the flight recorders what they need to know of this node's workers
// before there are any.
#pragma once

#include <functional>

#include "agent/workers/worker_plan.h"
#include "diagnosis/recorder/recorder_options.h"
#include "warm/warm_starts.h"

namespace ddprun::agent {

// `workers`: how many this node will have. `opens_recorder`: --flight-recorder.
warm::WarmStarts::Job warm_job(warm::Mode mode, bool opens_recorder, const WorkerPlan& plan,
                               int workers);

// Of those that are wanted, the ones that these workers can have.
RecorderOptions recorder_options(RecorderOptions wanted, const WorkerPlan& plan);

}  // namespace ddprun::agent
