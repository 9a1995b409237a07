// A dry run as text for people, in the same groups as --help. Pure.
#pragma once

#include <string>

#include "launcher/dry_run/dry_run.h"

namespace ddprun::launcher {

// All of it, several lines with a newline at the end.
std::string dry_run_text(const DryRun& dry);

// One line about this node's workers, for the nodes of a step that are not the first. No newline.
std::string dry_run_line(const DryRun& dry);

}  // namespace ddprun::launcher
