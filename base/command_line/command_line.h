// Splits a command line into options and the words behind them, by the rules of Python's argparse.
// It knows the names of the options, not what they mean. Pure; used for ddprun (options.cc) and for
// ddpctl (operator/ddpctl).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/command_line/option_row.h"
#include "base/error.h"

namespace ddprun::launcher {

// A name that is not in the table: one from an older launcher, or from another launcher.
struct OtherName {
    std::string_view name;
    std::string_view row;  // the name of the option here; there is such a row
    bool accepted;         // taken for that option, with a warning; else only named in the refusal
};

// The options that a command line may have, and what its other words are.
struct Grammar {
    std::vector<const OptionRow*> rows;
    std::span<const OtherName> other_names = {};
    // The first word that is no option ends the options: it is a program or a command, and what is
    // behind it is its own. Otherwise words and options may be mixed.
    bool ends_at_word = true;
    std::string_view advice = {};  // behind "no such option", where no name is near
};

// An option as the user gave it. A flag has the value "1".
struct GivenOption {
    const OptionRow* row = nullptr;
    std::string spelling;  // as the user wrote it, for messages: "--nproc_per_node"
    std::string value;
};

// The command line in its parts.
struct SplitWords {
    std::vector<GivenOption> options;   // in the order of the command line
    std::vector<std::string> the_rest;  // the program and its arguments, or the other words
    std::vector<std::string> warnings;  // one for each old name that was accepted
};

// Whether the option only prints something and exits: --help, --help-all, --version,
// --print-man, --print-completion.
bool only_prints(const OptionRow& row);

// Splits the words behind the program's own name. As in argparse, reading stops after an option
// that only prints. Possible errors: usage: an unknown option (with the nearest name, if there is
// one), an ambiguous abbreviation, a missing value, or a value for a flag.
Result<SplitWords> split_words(const std::vector<std::string>& words, const Grammar& grammar);

// Checks a value against the only words that the option accepts. The error, which
// lacks the option's name, names the closest word, else all of them. Possible errors: usage.
MaybeError check_choice(const OptionRow& row, std::string_view value);

}  // namespace ddprun::launcher
