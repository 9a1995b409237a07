// What the parts of a job are told, out of its plan: the rendezvous machine's and the agent's
// configuration. A translation, nothing is decided here.
//
// Thread: any.
#pragma once

#include <string>

#include "agent/node/runner.h"
#include "launcher/job/job.h"
#include "rendezvous/machine/machine.h"

namespace ddprun::launcher {

// Whether nodes share a ledger, so that another may lead after the first.
bool shares_ledger(const Plan& plan);

// Tells one command from another in a ledger; guards nothing. Of the workers' command only: our own
// options may differ from node to node, and from one submission to the next.
std::string command_digest(const Plan& plan);

// Of this node's service, which may have a random seed of its own.
rendezvous::MachineConfig machine_config(const JobInput& input, const rendezvous::NodeId& node);

// `leads`: at first. The listening socket that the keeper holds is the caller's to add.
agent::Runner::Config runner_config(const JobInput& input, const rendezvous::NodeId& node,
                                    bool leads);

}  // namespace ddprun::launcher
