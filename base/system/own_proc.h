// Whether /proc shows the processes of this PID namespace under the numbers that they have here.
//
// It does not in a container without /proc, and in a new PID namespace with the /proc of the outer
// one (`unshare --pid` without `--mount-proc`). There a number that was read from /proc belongs to
// another process: nobody may signal it.
#pragma once

#include <string>

namespace ddprun {

// Looked at once in the life of the process. Source: proc_pid_status(5), NSpid.
bool proc_is_ours();

// A path by which this process starts its own program again: /proc/self/exe, which stays right when
// the file is replaced; where there is no /proc, the path by which the program was started.
std::string own_program();

}  // namespace ddprun
