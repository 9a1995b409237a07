// Parses the remaining time of a job, as `squeue -h -o "%A %i %L"` prints it: "1-02:03:04",
// "2:03:04", "03:04" or "UNLIMITED". Pure.
//
// The remaining time is used and not the end time, so that neither clocks nor time zones matter.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "slurm/job_id.h"

namespace ddprun::slurm {

// The job has no time limit.
inline constexpr auto kNoLimit = std::chrono::seconds::max();

// squeue prints one line for each part of a heterogeneous job; the shortest time counts. Lines of
// other jobs, such as the other elements of an array, do not count. Returns kNoLimit for UNLIMITED,
// and nullopt when no line of this job has a time.
std::optional<std::chrono::seconds> read_time_left(std::string_view text, const JobId& job);

}  // namespace ddprun::slurm
