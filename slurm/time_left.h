// The time that a job has left, as squeue says it (`squeue -h -o %L`): "1-02:03:04", "2:03:04",
// "03:04", "UNLIMITED". Relative on purpose: no clock and no time zone has to be known. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace ddprun::slurm {

inline constexpr auto kNoLimit = std::chrono::seconds::max();

// Of several lines (the parts of a heterogeneous job) the shortest time, kNoLimit where it is
// UNLIMITED; nullopt: none says one.
std::optional<std::chrono::seconds> read_time_left(std::string_view text);

}  // namespace ddprun::slurm
