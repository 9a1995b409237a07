// The table of all options, torchrun's and ddprun's own: spelling, value, PET_ variable, default,
// help, and what each one sets in Options.
//
// From it come the grammar (command_line.cc, options.cc) and the texts (option_text.h: --help, man
// page, shell completion). A new option is one row in one of the option_rows_*.cc and one member of
// Options. Pure and constant.
#pragma once

#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/command_line/command_line.h"
#include "base/command_line/option_row.h"

namespace ddprun::launcher {

// Headings of --help that a dry run has too.
inline constexpr std::string_view kNodesTitle = "Nodes and workers", kMeetingTitle = "Meeting",
                                  kFailureTitle = "When something fails", kOutputTitle = "Output",
                                  kWorkerTitle = "The worker";

// Options under one heading of --help.
struct OptionGroup {
    std::string_view title;
    std::span<const OptionRow> rows;
};

std::span<const OptionGroup> option_groups();  // in the order of --help
// All rows in that order. A row's address is the same in every call.
inline auto option_table() {
    return option_groups() | std::views::transform(&OptionGroup::rows) | std::views::join;
}
std::span<const OtherName> other_names();
const OptionRow& option_row(std::string_view name);  // there must be such a row

const Grammar& job_grammar();  // of ddprun's command line

// The variable that stands in for the option: PET_NPROC_PER_NODE for nproc-per-node.
std::string pet_variable(const OptionRow& row);

}  // namespace ddprun::launcher
