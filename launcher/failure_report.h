// The report at the end of a job that did not succeed: why it ended, the first failure, and what
// that worker said last. Pure.
#pragma once

#include <string>
#include <vector>

#include "rendezvous/model.h"

namespace ddprun::launcher {

// Lines without prefix. `whole` is for one node of a job (the one that leads); the others say it in
// a line.
std::vector<std::string> failure_report(const rendezvous::Ending& ending, bool whole);

}  // namespace ddprun::launcher
