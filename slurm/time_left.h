// Parses the remaining time of a job, as `squeue -h -o %L` prints it: "1-02:03:04", "2:03:04",
// "03:04" or "UNLIMITED". Pure.
//
// The remaining time is used and not the end time, so that neither clocks nor time zones matter.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace ddprun::slurm {

// The job has no time limit.
inline constexpr auto kNoLimit = std::chrono::seconds::max();

// squeue prints one line for each part of a heterogeneous job; the shortest time counts. Returns
// kNoLimit for UNLIMITED, and nullopt when no line has a time.
std::optional<std::chrono::seconds> read_time_left(std::string_view text);

}  // namespace ddprun::slurm
