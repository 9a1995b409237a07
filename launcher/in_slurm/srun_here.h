// What the srun that has started this process was called with, where it runs on this host: the one
// place in which `--no-kill` can be seen (slurm/no_kill.h).
//
// Thread: any; reads /proc, some milliseconds.
#pragma once

#include <optional>
#include <string>

namespace ddprun::launcher {

// Whether that srun goes on when a node is lost. None: it runs elsewhere, starts ddprun by a shell's
// script, or several of this job start the same in different ways.
std::optional<bool> srun_survives_loss(const std::string& job_id,
                                       const std::string& processes = "/proc");

}  // namespace ddprun::launcher
