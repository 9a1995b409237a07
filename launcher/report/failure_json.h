// The failure report for programs: what lies beside the logs and what --on-failure gets on its
// standard input. README.md of this folder says what each field means. Pure.
#pragma once

#include <string>

#include "launcher/report/failure_report.h"

namespace ddprun::launcher {

inline constexpr int kFailureJsonVersion = 1;  // grows when a field changes its meaning or goes

// Indented, in UTF-8 (what a worker printed that is none is replaced), with a newline at its end.
std::string failure_json(const FailureReport& report);

// The root cause as torchrun copies it to where its own TORCHELASTIC_ERROR_FILE says: a scheduler
// above us looks there.
std::string torchrun_error_json(const FailureReport& report, Duration now);

}  // namespace ddprun::launcher
