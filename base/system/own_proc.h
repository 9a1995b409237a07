// Whether /proc shows the processes of this PID namespace under the numbers that they have here.
//
// It does not in a container without /proc, and in a new PID namespace with the /proc of the outer
// one (`unshare --pid` without `--mount-proc`). There a number that was read from /proc belongs to
// another process: nobody may signal it.
#pragma once

namespace ddprun {

// Looked at once in the life of the process. Source: proc_pid_status(5), NSpid.
bool proc_is_ours();

}  // namespace ddprun
