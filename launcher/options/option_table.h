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

#include "launcher/options/option_row.h"

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

// A name that is not in the table: one from an older launcher, or from another launcher.
struct OtherName {
    std::string_view name;
    std::string_view row;  // the name of the option here
    bool accepted;         // taken for that option, with a warning; else only named in the refusal
};

std::span<const OptionGroup> option_groups();  // in the order of --help
// All rows in that order. A row's address is the same in every call.
inline auto option_table() {
    return option_groups() | std::views::transform(&OptionGroup::rows) | std::views::join;
}
std::span<const OtherName> other_names();
const OptionRow& option_row(std::string_view name);  // there must be such a row

// The options that a command line may have, and what its other words are: for command_line.h.
struct Grammar {
    std::vector<const OptionRow*> rows;
    std::span<const OtherName> other_names = {};
    // The first word that is no option ends the options: it is a program or a command, and what is
    // behind it is its own. Otherwise words and options may be mixed.
    bool ends_at_word = true;
    std::string_view advice = {};  // behind "no such option", where no name is near
};
const Grammar& job_grammar();  // ddprun's

// The variable that stands in for the option: PET_NPROC_PER_NODE for nproc-per-node.
std::string pet_variable(const OptionRow& row);

}  // namespace ddprun::launcher
