// One node's part of a job, put together and run: rendezvous service (on the leader), agent,
// consoles, signals. The composition root behind main(): who is made, in which order, and unmade.
//
// Thread: the caller's, which becomes the loop's. Blocks until the job has ended on this node.
#pragma once

#include "agent/keeper/keeper.h"
#include "launcher/plan/job_input.h"
#include "rendezvous/model/model.h"

namespace ddprun::launcher {

// The ending's code is what every node exits with. The keeper is shut down before this returns.
rendezvous::Ending run_job(JobInput input, agent::Keeper keeper);

}  // namespace ddprun::launcher
