// One row of the option table: spelling, value, PET_ variable, default, help, and what the option
// sets in Options. A plain constant.
#pragma once

#include <optional>
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
    std::string_view brief = {};    // of an option that -h and --help show: its line in -h
    std::string_view choices = {};  // words separated by blanks, for checks and completion
    bool closed = false;            // no value is accepted that is not one of the choices
    // The value of the option without "="; then no next word is taken.
    std::string_view implied = {};
    // An empty value is accepted and means "not given", as with torchrun.
    bool may_be_empty = false;
    bool pet = true;  // a PET_ variable can give this option
    // Products that it needs, which a build may leave out: for values that begin like this.
    std::string_view products = {}, product_value = {};
    std::string_view default_text = {};
    std::string_view help;
    // torchrun's default, if it is another, and its disadvantage.
    std::string_view differs = {};
    // Reads the value (empty for a flag) and stores it. Null: an ignored option whose value is not
    // checked beyond its choices.
    MaybeError (*set)(Options& options, const std::string& value) = nullptr;
};

}  // namespace ddprun::launcher
