// The table of all options, torchrun's and ddprun's own: spelling, value, PET_ variable, default,
// help.
//
// From it come the grammar (command_words.cc, options.cc) and the texts (option_text.h: --help, man
// page, shell completion). What a value means stands in option_values.h; what it sets, in
// option_setters.cc. Pure and constant.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace ddprun::launcher {

// The headings of --help; title() has their texts.
enum class OptionGroup { nodes, meeting, failure, output, worker, slurm, store, other };

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
    char letter;            // short spelling, e.g. 'r'; 0: none
    // Stands for the value in texts; empty: the option takes no value.
    std::string_view placeholder;
    OptionKind kind;
    OptionGroup group;
    // torchrun has this option too. An abbreviation then means this one rather than one of ours.
    bool torchrun;
    std::string_view default_text;
    std::string_view help;
    // torchrun's default, if it is another, and its disadvantage.
    std::string_view differs = {};
    std::string_view choices = {};  // words separated by blanks, for checks and completion
    bool pet = true;                // a PET_ variable can give this option
    // The value of the option without "="; then no next word is taken.
    std::string_view implied = {};
};

// A name that is not in the table: one from an older launcher, or from another launcher.
struct OtherName {
    std::string_view name;
    std::string_view row;  // the name of the option here
    bool accepted;         // taken for that option, with a warning; else only named in the refusal
};

std::span<const OptionRow> option_table();
std::span<const OtherName> other_names();
const OptionRow& option_row(std::string_view name);  // there must be such a row
// The heading of a group in --help.
std::string_view title(OptionGroup group);

// The variable that stands in for the option: PET_NPROC_PER_NODE for nproc-per-node.
std::string pet_variable(const OptionRow& row);

}  // namespace ddprun::launcher
