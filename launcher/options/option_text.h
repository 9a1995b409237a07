// The texts made from the option table: --help, the manual page, shell completion. Pure.
#pragma once

#include <string>
#include <string_view>

namespace ddprun::launcher {

// The text of --help, in groups. It names each default, torchrun's different default, and why they
// differ.
std::string help_text();

// The same as a manual page in roff's man macros, with environment variables and exit codes added.
std::string man_page(std::string_view version);

// A completion script for bash, zsh, fish or tcsh. `name` is the command to complete: ddprun, or
// torchrun if it is called so. The caller has checked `shell`.
std::string completion(std::string_view shell, std::string_view name);

}  // namespace ddprun::launcher
