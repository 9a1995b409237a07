// Where the report of a failed job goes on this node. Pure.
#pragma once

#include <string>

#include "launcher/plan/job_input.h"
#include "launcher/report/tell_failure.h"

namespace ddprun::launcher {

// `report` is that of `ending`. `leads`: this node leads, or the job has one node. `log_folder`: of
// the workers' files; empty: there are none.
FailureOutlets failure_outlets(const JobInput& input, const rendezvous::Ending& ending,
                               const FailureReport& report, bool leads,
                               const std::string& log_folder);

}  // namespace ddprun::launcher
