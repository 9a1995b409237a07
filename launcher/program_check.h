// Whether the worker's program can be started, looked at before anything else is: a missing or
// unreadable program is the user's to mend, and nobody should wait at a rendezvous for it. Shell:
// looks at files.
#pragma once

#include "launcher/plan.h"

namespace ddprun::launcher {

// Possible errors: usage, naming the path and the mend. `path` is the PATH that workers will see.
Result<> check_program(const WorkerCommand& command, const std::string& path);

}  // namespace ddprun::launcher
