// The groups of the option table, each defined where its rows stand: option_rows_meeting.cc,
// option_rows_failure.cc, option_rows_workers.cc, option_rows_other.cc. option_table.cc puts them
// together.
#pragma once

#include <span>

#include "base/command_line/option_row.h"

namespace ddprun::launcher {

std::span<const OptionRow> node_rows();
std::span<const OptionRow> meeting_rows();
std::span<const OptionRow> failure_rows();
std::span<const OptionRow> output_rows();
std::span<const OptionRow> worker_rows();
std::span<const OptionRow> slurm_rows();
std::span<const OptionRow> store_rows();
std::span<const OptionRow> other_rows();

}  // namespace ddprun::launcher
