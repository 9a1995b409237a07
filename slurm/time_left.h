// Parses the remaining time of a job and of a step, as squeue prints it: "1-02:03:04", "2:03:04",
// "03:04" or "UNLIMITED". Pure.
//
// The remaining time is used and not the end time, so that neither clocks nor time zones matter.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "slurm/job_id.h"

namespace ddprun::slurm {

// The job, or the step, has no time limit.
inline constexpr auto kNoLimit = std::chrono::seconds::max();

// A job as squeue lists it.
struct ListedJob {
    JobId id;  // as Slurm spells it, also before the names of its steps
    std::chrono::seconds left{};
};

// `text` is the output of `squeue -h -o "%A %i %L"`. It has one line for each part of a
// heterogeneous job; the shortest time counts. Lines of other jobs, such as the other elements of
// an array, do not count. Returns kNoLimit for UNLIMITED, and nullopt when no line of this job has
// a time.
std::optional<ListedJob> find_listed(std::string_view text, const JobId& job);

// `text` is the output of `squeue -s -h -o "%i %l %M"`: name, limit and used time of each step. Of
// the step with this number; kNoLimit if it has no limit of its own (srun --time) or is not listed.
std::chrono::seconds step_time_left(std::string_view text, const JobId& job, std::string_view step);

}  // namespace ddprun::slurm
