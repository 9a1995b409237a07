// The worker of a check. `ddprun --check` starts one on each node, in a job that meets, proves its
// identity and opens its ledger like any other. The workers put the addresses of their listeners
// into the workers' store, call each other, and store what they found. Rank 0 prints the report.
//
// Keys in the workers' store:
//
//   check/place/RANK   host, port and word of that node's listener (check_reach.h)
//   check/places       all of these, one a line, by rank
//   check/facts/RANK   what the node found, as JSON (check_facts.h)
//   check/end          set when the report is printed
//
// Shell; blocks. Every single wait has a limit.
#pragma once

#include "launcher/job/products.h"
#include "launcher/options/options.h"
#include "launcher/plan/job_input.h"

namespace ddprun::launcher {

// Returns the exit code: 0 if nothing is wrong, kCheckWrong if something is, 70 if the store cannot
// be used or this process is not a worker. `input` is the plan that a real start on this node would
// have.
int check_node(const JobInput& input, CheckFormat format, const Products& products);

}  // namespace ddprun::launcher
