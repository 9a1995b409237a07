// The parts of --help and of the manual page that are not about options: exit codes, files,
// variables, signals, examples. A plain constant.
#pragma once

#include <span>

#include "base/command_line/text_parts.h"

namespace ddprun::launcher {

std::span<const ManualSection> manual_sections();

}  // namespace ddprun::launcher
