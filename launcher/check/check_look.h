// What a node sees of itself in a check: ledger, GPUs, program, space, limits. Nothing is changed;
// a file system that does not answer within 10 s is said so, and an etcd that does not within 2 s
// for each endpoint. Shell; blocks.
#pragma once

#include "launcher/check/check_facts.h"
#include "launcher/plan/job_input.h"

namespace ddprun::launcher {

// All but what other nodes are needed for.
NodeFacts look_at_node(const JobInput& input);

}  // namespace ddprun::launcher
