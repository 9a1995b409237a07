// Whether the worker's program can be started, looked at before anything else is: a missing or
// unreadable program is the user's to mend, and nobody should wait at a rendezvous for it. Shell:
// looks at files.
#pragma once

#include <string>

#include "launcher/plan/plan.h"

namespace ddprun::launcher {

// The file that a name without a slash stands for; empty: none.
std::string find_in_path(const std::string& program, const std::string& path);

// Possible errors: usage, naming the path and the mend. `path` is the PATH that workers will see.
Result<> check_program(const WorkerCommand& command, const std::string& path);

}  // namespace ddprun::launcher
