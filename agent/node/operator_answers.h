// What this node's agent answers operators who ask about its own workers (`ddpctl logs`, `stacks`):
// what a worker prints, and where its threads are.
//
// Thread: the loop's.
#pragma once

#include <functional>

#include "agent/node/diagnosis.h"
#include "agent/workers/worker_set.h"
#include "rendezvous/model/own_workers.h"

namespace ddprun::agent {

// `workers`: those of the newest generation; null: none have been started yet. It and `diagnosis`
// must outlive the answers, and a look that is under way must not outlive `diagnosis`.
rendezvous::OwnWorkers operator_answers(std::function<const WorkerSet*()> workers,
                                        Diagnosis& diagnosis);

}  // namespace ddprun::agent
