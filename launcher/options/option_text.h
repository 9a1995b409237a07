// What is made from the table of options for people and shells: --help, the man page, completion.
// Pure.
#pragma once

#include <string>
#include <string_view>

namespace ddprun::launcher {

// Grouped; names the defaults, those that differ from torchrun's, and why.
std::string help_text();

// The same as a manual page, in roff's man macros, with what the help has no room for: variables,
// exit codes.
std::string man_page(std::string_view version);

// A script for bash, zsh, fish or tcsh that completes the command `name` (ddprun, or torchrun where
// it is called so). Another shell is a programmer's mistake.
std::string completion(std::string_view shell, std::string_view name);

}  // namespace ddprun::launcher
