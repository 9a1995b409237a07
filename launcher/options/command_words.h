// How a command line falls apart into options and a program, without knowing what any option means:
// argparse's rules. Pure; used by options.cc alone.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "launcher/options/option_table.h"

namespace ddprun::launcher {

// An option as it was given; a flag has the value "1".
struct GivenOption {
    const OptionRow* row = nullptr;
    std::string spelling;  // as the user wrote it, for messages: "--nproc_per_node"
    std::string value;
};

struct SplitWords {
    std::vector<GivenOption> options;   // in order
    std::vector<std::string> the_rest;  // the program and its arguments
    std::vector<std::string> warnings;  // old names that were taken, and the new ones
};

// Reading ends behind an option that prints and leaves (--help), as argparse does. Possible errors:
// usage: an unknown option (with the name that was meant, if one is near), an ambiguous prefix, a
// value missing or too many.
// Whether it prints and leaves: --help, --version, --print-man, --print-completion.
bool only_prints(const OptionRow& row);

Result<SplitWords> split_words(const std::vector<std::string>& words);

}  // namespace ddprun::launcher
