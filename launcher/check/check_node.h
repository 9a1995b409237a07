// The worker of a check: one on each node, in a job that has met, proved its identity and opened
// its ledger as any other. The nodes leave in the workers' store where they are to be called, call
// each other, and leave there what they have found; rank 0 prints the report.
//
//   check/place/RANK   host, port and word of its Reach
//   check/places       all of them, one a line, by rank
//   check/facts/RANK   check_facts.h
//   check/end          the report is printed
//
// Shell; blocks, for 90 s at most.
#pragma once

#include "launcher/options/options.h"
#include "launcher/plan/job_input.h"

namespace ddprun::launcher {

// The exit code: 0, kCheckWrong, or 70 when the store cannot be used. `input` is what a start on
// this node would have.
int check_node(const JobInput& input, CheckFormat format);

}  // namespace ddprun::launcher
