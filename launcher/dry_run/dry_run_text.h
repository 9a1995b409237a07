// A dry run for people, in the groups of --help. Pure.
#pragma once

#include <string>

#include "launcher/dry_run/dry_run.h"

namespace ddprun::launcher {

std::string dry_run_text(const DryRun& dry);

// Of a node that leaves the telling to the step's first one: what is its own, in a line.
std::string dry_run_line(const DryRun& dry);

}  // namespace ddprun::launcher
