// The table of all options, torchrun's and ddprun's own: spelling, value, PET_ variable, default,
// help, and what each one sets in Options.
//
// From it come the grammar (command_words.cc, options.cc) and the texts (option_text.h: --help, man
// page, shell completion). A new option is one row in one of the option_rows_*.cc and one member of
// Options. Pure and constant.
#pragma once

#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace ddprun::launcher {

struct Options;
using MaybeError = std::optional<Error>;

// What kind of value an option takes. `ignored` is an option of torchrun without a meaning here:
// its value is checked and not used. Unless it is the default, a warning says why (the help text).
enum class OptionKind {
    flag,   // no value; its PET_ variable is a number, 0 means off
    value,  // one value
    ignored,
};

// One option. An empty text means that there is none.
struct OptionRow {
    std::string_view name;  // with dashes between words, without the two in front
    char letter = 0;        // short spelling, e.g. 'r'; 0: none
    // Stands for the value in texts; empty: the option takes no value.
    std::string_view placeholder = {};
    OptionKind kind = OptionKind::value;
    // torchrun has this option too. An abbreviation then means this one rather than one of ours.
    bool torchrun = false;
    std::string_view choices = {};  // words separated by blanks, for checks and completion
    bool closed = false;            // no value is accepted that is not one of the choices
    // The value of the option without "="; then no next word is taken.
    std::string_view implied = {};
    // An empty value is accepted and means "not given", as with torchrun.
    bool may_be_empty = false;
    bool pet = true;  // a PET_ variable can give this option
    std::string_view default_text = {};
    std::string_view help;
    // torchrun's default, if it is another, and its disadvantage.
    std::string_view differs = {};
    // Reads the value (empty for a flag) and stores it. Null: an ignored option whose value is not
    // checked beyond its choices.
    MaybeError (*set)(Options& options, const std::string& value) = nullptr;
};

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

// The variable that stands in for the option: PET_NPROC_PER_NODE for nproc-per-node.
std::string pet_variable(const OptionRow& row);

}  // namespace ddprun::launcher
