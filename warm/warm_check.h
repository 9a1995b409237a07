// Tries without a job whether the workers of a script could be warm (`ddprun --check`): imports in
// a child what a server would import.
//
// Blocks for as long as the imports take, 30 s at most. Thread: any.
#pragma once

#include <map>
#include <string>

#include "agent/parts/warm_findings.h"
#include "agent/workers/python_command.h"

namespace ddprun::agent::warm {

// `temporary`: a folder for the bootstrap, which is removed again.
WarmCheck warm_check(const PythonCommand& command, const std::string& temporary,
                     const std::map<std::string, std::string>& environment);

}  // namespace ddprun::agent::warm
