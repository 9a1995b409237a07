// A dry run for programs. README.md of this folder says what each field means. Pure.
#pragma once

#include <string>

#include "launcher/dry_run/dry_run.h"

namespace ddprun::launcher {

inline constexpr int kDryRunJsonVersion = 1;  // grows when a field changes its meaning or goes

// Indented, in UTF-8 (what is none on a command line is replaced), with a newline at its end.
std::string dry_run_json(const DryRun& dry);

}  // namespace ddprun::launcher
