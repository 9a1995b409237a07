// What the keeper needs to know of a worker, without its environment and its pipes: the command
// line, the CPUs, the standard input. Thread: any.
#pragma once

#include "agent/workers/worker_plan.h"
#include "keeper/between/worker_start.h"

namespace ddprun::agent {

// `index` counts the workers of this ddprun.
WorkerStart worker_start(const WorkerPlan& plan, int index, int local_rank);

}  // namespace ddprun::agent
