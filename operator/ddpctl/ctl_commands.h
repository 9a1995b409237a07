// The commands of ddpctl, each with its words and options: one table, from which the parser
// (ctl_call.h), help, manual page and completion (ctl_text.h) are made. What a command does is in
// main.cc's table. A new command is a row in each of the two. Pure and constant.
#pragma once

#include <span>
#include <string_view>

#include "base/command_line/option_row.h"
#include "base/command_line/text_parts.h"
#include "base/exit_code.h"

namespace ddprun::launcher {

struct Command {
    std::string_view name;
    std::string_view words = {};  // behind it, for texts: "[NAME...]"; empty: it takes none
    std::string_view what;        // in a line: "Show the jobs below a folder"
    std::string_view help = {};   // more than that
    std::span<const OptionRow> rows = {};  // besides those of all commands
};

std::span<const Command> commands();
const Command* find_command(std::string_view name);  // null: there is none
// The options of every command, and those without a command. No row has a setter (ctl_call.h).
std::span<const OptionRow> rows_of_all();
std::span<const OptionRow> rows_without_command();

// Exit codes besides those of base/exit_code.h.
inline constexpr int kNoSuchJobCode = 1;    // or a job that was named was left alone
inline constexpr int kNotAllowedCode = 77;  // a job does not answer without its secret
int ctl_exit_code(const Error& error);

// Exit codes, variables and examples.
std::span<const ManualSection> ctl_sections();

}  // namespace ddprun::launcher
