// The job that a call of ddpctl means, by the name that people have: an id of Slurm ("1001",
// "1001_3"), a run name, a process id, or none where only one job fits. It may have been started in
// another folder: Slurm knows that of its jobs, and the kernel that of the jobs on this host.
//
// Thread: blocks as long as the file system or Slurm does.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "operator/ddpctl/ctl_call.h"
#include "operator/ddpctl/found_job.h"
#include "operator/ddpctl/survey.h"

namespace ddprun::launcher {

// The job and step of Slurm in which this program runs.
SlurmNames own_slurm_names();

// Possible errors: those of survey_ledgers(); not_found; usage (several fit); refused (it is
// another user's).
Result<FoundJob> find_meant(const CtlCall& call, Wanted wanted);

// All jobs that can be known: of the folder that is meant, of this host, and of the folders of
// Slurm's jobs. Those that run come first, then those in the queue. With --all also those of other
// users that run on this host. Possible errors: those of survey_ledgers().
Result<Survey> survey_all(const CtlCall& call);

}  // namespace ddprun::launcher
