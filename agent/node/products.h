// What products add to the agent of a node. The program hands them in, so that the agent knows none
// of them; null: the program was built without this one.
#pragma once

#include "agent/node/diagnosis.h"
#include "agent/node/worker_starts.h"
#include "agent/workers/worker_set.h"

namespace ddprun::agent {

struct Products {
    MakeWorkerStarts starts = nullptr;  // warm/
    MakeDiagnosis diagnosis = nullptr;  // diagnosis/
    WorkerSet::Products workers;        // agent/pmi/, and another part of diagnosis/
};

}  // namespace ddprun::agent
