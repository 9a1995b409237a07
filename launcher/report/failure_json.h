// The failure report as JSON: the file beside the logs, and the standard input of --on-failure.
// launcher/README.md says what each field means. Pure.
#pragma once

#include <string>

#include "launcher/report/failure_report.h"

namespace ddprun::launcher {

// Increased when a field changes its meaning or is removed.
inline constexpr int kFailureJsonVersion = 1;

// Indented UTF-8 with a newline at the end. Bytes from workers that are not UTF-8 are replaced.
std::string failure_json(const FailureReport& report);

// The root cause in the form that torchrun writes to the file named by its own
// TORCHELASTIC_ERROR_FILE. A scheduler above ddprun may read that file. `now` is the time of day.
std::string torchrun_error_json(const FailureReport& report, Duration now);

}  // namespace ddprun::launcher
