// Translates a plan into the configuration of the rendezvous machine and of the agent. Decides
// nothing.
//
// Thread: any.
#pragma once

#include <string>

#include "agent/node/runner.h"
#include "launcher/job/job.h"
#include "rendezvous/machine/machine.h"

namespace ddprun::launcher {

// Whether the nodes share a ledger. Only then another node can lead when the first leader is lost.
bool shares_ledger(const Plan& plan);

// A digest of the workers' command. It tells the ledgers of two different commands apart; it
// protects nothing. ddprun's own options are left out, because they may differ from node to node
// and from one submission to the next.
std::string command_digest(const Plan& plan);

// For this node's rendezvous service. The random seed may differ from node to node.
rendezvous::MachineConfig machine_config(const JobInput& input, const rendezvous::NodeId& node);

// For this node's agent. `leads`: this node leads at the start. The caller adds the listening
// socket that the keeper holds.
agent::Runner::Config runner_config(const JobInput& input, const rendezvous::NodeId& node,
                                    bool leads);

}  // namespace ddprun::launcher
