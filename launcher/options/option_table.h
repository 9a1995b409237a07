// Every option of ddprun, torchrun's and our own: spelling, value, PET_ variable, default and help,
// in one table from which the grammar (words.cc, options.cc), the texts (option_text.h: --help, the
// man page, completion) and the page of differences are made. What an option's value means stands
// in option_values.h; where it ends up, in options.cc. Pure, constant.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace ddprun::launcher {

enum class OptionGroup { nodes, meeting, failure, output, worker, slurm, store, other };

enum class OptionKind {
    flag,     // no value; its PET_ variable is a number, 0 is off
    value,    // one value
    ignored,  // torchrun's; its value, if it has a placeholder, is checked and not used, with a
              // warning that says why (the help), but for the value that stands as its default
};

struct OptionRow {
    std::string_view name;         // with dashes, without the two in front
    char letter;                   // short spelling, 0: none
    std::string_view placeholder;  // of the value; empty: the option takes none
    OptionKind kind;
    OptionGroup group;
    bool torchrun;  // torchrun knows it too: then an abbreviation means this one rather than one of
                    // ours
    std::string_view default_text;
    std::string_view help;
    std::string_view differs =
        {};  // torchrun's default, where it is another, and what is wrong with it
    std::string_view choices = {};  // words, with blanks between them, that completion offers
    bool pet = true;                // whether its PET_ variable counts
    std::string_view implied = {};  // the value of the option alone; another stands behind = only
};

// A name that is not in the table: what older launchers or other ones call an option.
struct OtherName {
    std::string_view name;
    std::string_view row;  // what it is here
    bool accepted;         // taken for the row, with a warning; else only named in the refusal
};

std::span<const OptionRow> option_table();
std::span<const OtherName> other_names();
const OptionRow& option_row(std::string_view name);  // that there is such a row is a precondition
std::string_view title(OptionGroup group);

// PET_NPROC_PER_NODE for nproc-per-node.
std::string pet_variable(const OptionRow& row);

}  // namespace ddprun::launcher
