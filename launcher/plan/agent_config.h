// What follows from the plan for the agent: what a node offers, and what its workers are. A dry run
// shows this part too. It decides nothing. Pure.
#pragma once

#include <string>

#include "agent/workers/worker_plan.h"
#include "launcher/plan/job_input.h"
#include "rendezvous/model/model.h"

namespace ddprun::launcher {

// The other nodes reach the leader by the name that they were given. A node that does not lead
// leaves the address empty here, and later offers the one from which it reached the leader
// (LinkUp).
rendezvous::Offer offer_of(const JobInput& input, bool leads);

// Whether the node serves torchrun's file timers.
bool serves_timers(const JobInput& input);
// The path of their FIFO, if the user gave one. Tasks on one host all get the same value, so each
// task after the first adds its number: /run/timer, /run/timer.1, /run/timer.2.
std::string timer_file(const JobInput& input);

// The caller adds whether a worker holds the terminal.
agent::WorkerPlan worker_plan(const JobInput& input, const rendezvous::NodeId& node);

}  // namespace ddprun::launcher
