// A dry run as JSON, for programs. launcher/README.md says what each field means. Pure.
#pragma once

#include <string>

#include "launcher/dry_run/dry_run.h"

namespace ddprun::launcher {

// Increased when a field changes its meaning or is removed.
inline constexpr int kDryRunJsonVersion = 1;

// Indented UTF-8 with a newline at the end. Bytes of a command line that are not UTF-8 are
// replaced.
std::string dry_run_json(const DryRun& dry);

}  // namespace ddprun::launcher
