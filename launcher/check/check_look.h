// What a node sees of itself in a check: ledger, GPUs, program, disk space, limits. It changes
// nothing.
//
// Shell. Blocks: a file system that does not answer costs 10 s a question, an etcd that does not
// answer its own deadline. Both become findings.
#pragma once

#include "launcher/check/check_facts.h"
#include "launcher/job/products.h"
#include "launcher/plan/job_input.h"

namespace ddprun::launcher {

// Fills everything in NodeFacts that needs no other node.
NodeFacts look_at_node(const JobInput& input, const Products& products);

}  // namespace ddprun::launcher
