// Translates a plan into the configuration of the rendezvous machine, of the agent and of the log.
// Decides nothing.
//
// Thread: any.
#pragma once

#include <string>

#include "agent/node/runner.h"
#include "base/log_line.h"
#include "launcher/plan/job_input.h"
#include "rendezvous/machine/machine.h"

namespace ddprun::launcher {

// For this node's rendezvous service. The random seed may differ from node to node.
rendezvous::MachineConfig machine_config(const JobInput& input, const rendezvous::NodeId& node);

// For this node's agent. `leads`: this node leads at the start. The caller adds the listening
// socket that the keeper holds.
agent::Runner::Config runner_config(const JobInput& input, const rendezvous::NodeId& node,
                                    bool leads);

// How this node's own lines look. In a job of several nodes each begins with the node's name, since
// srun mixes the output of all.
LogStyle log_style(const Plan& plan);
// The lowest level that is printed. By default one node, the leader, tells the story of the job and
// the others print only warnings; otherwise n nodes would print each line n times.
Note::Level least_level(const Plan& plan, bool leads);

}  // namespace ddprun::launcher
