// Translates a plan into the configuration of the rendezvous machine and of the agent. Decides
// nothing.
//
// Thread: any.
#pragma once

#include <string>

#include "agent/node/runner.h"
#include "launcher/plan/job_input.h"
#include "rendezvous/machine/machine.h"

namespace ddprun::launcher {

// For this node's rendezvous service. The random seed may differ from node to node.
rendezvous::MachineConfig machine_config(const JobInput& input, const rendezvous::NodeId& node);

// For this node's agent. `leads`: this node leads at the start. The caller adds the listening
// socket that the keeper holds.
agent::Runner::Config runner_config(const JobInput& input, const rendezvous::NodeId& node,
                                    bool leads);

}  // namespace ddprun::launcher
