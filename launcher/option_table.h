// Every option of ddprun, torchrun's and our own: spelling, value, PET_ variable, default and help,
// in one table from which the grammar (options.cc) and the text of --help are made. What an
// option's value means stands in option_values.h; where it ends up, in options.cc. Pure, constant.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace ddprun::launcher {

enum class OptionGroup { nodes, meeting, failure, output, worker, store, other };

enum class OptionKind {
    flag,     // no value; its PET_ variable is a number, 0 is off
    value,    // one value
    ignored,  // torchrun's, one value; taken and not used, with a warning that says why
};

struct OptionRow {
    std::string_view name;         // with dashes, without the two in front
    char letter;                   // short spelling, 0: none
    std::string_view placeholder;  // of the value
    OptionKind kind;
    OptionGroup group;
    bool torchrun;  // torchrun knows it too: then an abbreviation means this one rather than one of
                    // ours
    std::string_view default_text;
    std::string_view help;
};

std::span<const OptionRow> option_table();
std::string_view title(OptionGroup group);

// PET_NPROC_PER_NODE for nproc-per-node.
std::string pet_variable(const OptionRow& row);

}  // namespace ddprun::launcher
