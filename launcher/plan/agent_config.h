// What a node offers and what its workers are, out of its plan: the part of the agent's
// configuration that a dry run shows as well. A translation, nothing is decided here. Pure.
#pragma once

#include <string>

#include "agent/workers/worker_plan.h"
#include "launcher/plan/job_input.h"
#include "rendezvous/model/model.h"

namespace ddprun::launcher {

rendezvous::Limits limits_of(const Plan& plan);

// The others reach the leader by the name that they were given for it; who is not the leader
// offers the address from which it reached it (LinkUp), and none here.
rendezvous::Offer offer_of(const JobInput& input, bool leads);

// torchrun's file timers.
bool serves_timers(const JobInput& input);
// Where their FIFO is to be, if the user has named a place. Tasks of a host are named the same, and
// each has its own: /run/timer, /run/timer.1, /run/timer.2.
std::string timer_file(const JobInput& input);

// Whether a worker holds the terminal is the caller's to add.
agent::WorkerPlan worker_plan(const JobInput& input, const rendezvous::NodeId& node);

}  // namespace ddprun::launcher
