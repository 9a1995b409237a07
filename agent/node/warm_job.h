// Tells the warm starts and the flight recorders what they need to know of this node's workers
// before there are any.
#pragma once

#include "agent/node/worker_starts.h"
#include "agent/parts/recorder_options.h"
#include "agent/workers/worker_plan.h"

namespace ddprun::agent {

// `workers`: how many this node will have. `opens_recorder`: --flight-recorder.
WorkerStarts::Job warm_job(warm::Mode mode, bool opens_recorder, const WorkerPlan& plan,
                           int workers);

// Of those that are wanted, the ones that these workers can have.
RecorderOptions recorder_options(RecorderOptions wanted, const WorkerPlan& plan);

}  // namespace ddprun::agent
