// Runs one node's part of a job: rendezvous service, agent, consoles, signals. This is the
// composition root behind main(): it makes the objects, starts them, waits, and destroys them in
// reverse order.
//
// Thread: the caller's, which becomes the loop's. Blocks until the job has ended on this node.
#pragma once

#include "keeper/keeper.h"
#include "launcher/job/products.h"
#include "launcher/plan/job_input.h"
#include "rendezvous/model/model.h"

namespace ddprun::launcher {

// Returns how the job ended; Ending::code is the exit code of every node. The keeper is shut down
// before this returns.
rendezvous::Ending run_job(JobInput input, agent::Keeper keeper, const Products& products);

}  // namespace ddprun::launcher
