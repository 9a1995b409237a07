// Finds the options with which srun started this process. Only srun's own command line shows
// whether `--no-kill` was given (slurm/no_kill.h), and only if srun runs on this host.
//
// Thread: any. Reads /proc; takes some milliseconds.
#pragma once

#include <optional>
#include <string>

namespace ddprun::launcher {

// Whether that srun lets the step go on when a node is lost. Nothing: srun runs on another host, it
// starts ddprun through a shell script, or several sruns of this job start the same command with
// different options.
std::optional<bool> srun_survives_loss(const std::string& job_id,
                                       const std::string& processes = "/proc");

}  // namespace ddprun::launcher
