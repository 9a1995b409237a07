// Splits a command line into options and the words behind them, by the rules of Python's argparse.
// It knows the names of the options, not what they mean. Pure; used for ddprun (options.cc) and for
// ddpctl (launcher/ctl).
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "launcher/options/option_table.h"

namespace ddprun::launcher {

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
Result<SplitWords> split_words(const std::vector<std::string>& words,
                               const Grammar& grammar = job_grammar());

// Checks a value against the only words that the option accepts. The error, which
// lacks the option's name, names the closest word, else all of them. Possible errors: usage.
MaybeError check_choice(const OptionRow& row, std::string_view value);

}  // namespace ddprun::launcher
