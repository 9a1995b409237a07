// The texts made from the table of ddpctl's commands: --help, the manual page, shell completion.
// Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/release.h"
#include "operator/ddpctl/ctl_call.h"

namespace ddprun::launcher {

// All commands with their options, and of one command all about it.
std::string ctl_help();
std::string command_help(const Command& command);
// In roff's man macros.
std::string ctl_man_page(std::string_view version);
// For bash, zsh or fish; the caller has checked `shell`.
std::string ctl_completion(std::string_view shell);

// The text that an option asks for instead of a command; nothing: none is asked for.
std::optional<std::string> ctl_printed_text(const CtlCall& call, const Release& release);

}  // namespace ddprun::launcher
