// The parts that help, manual pages and completion scripts of ddprun and ddpctl are made of. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/command_line/option_row.h"

namespace ddprun::launcher {

// What manual page and --help have beside the options: exit codes, files, variables, examples.
struct ManualRow {
    std::string_view term, what;
};

struct ManualSection {
    std::string_view title;    // in --help
    std::string_view heading;  // in the manual page
    bool in_short_help = true;  // --help has it, too, and not only --help-all
    std::span<const ManualRow> rows;
};

inline constexpr std::size_t kColumns = 100, kIndent = 8;  // of --help

// Appends words, broken into lines of at most `columns` with `indent` blanks in front. It always
// begins with a new line.
void append_wrapped(std::string& text, std::string_view words, std::size_t indent = kIndent,
                    std::size_t columns = kColumns);
// An option with its description, as --help has it and as a manual page has it.
void append_option(std::string& text, const OptionRow& row);
// The same in one line, of an option that has a brief text.
void append_brief_option(std::string& text, const OptionRow& row);
std::string man_option(const OptionRow& row);
// The same for what is no option.
void append_manual_row(std::string& text, const ManualRow& row);
std::string man_row(const ManualRow& row);
// Escapes text for roff: "\-" prints a minus sign that can be copied (a plain "-" is a hyphen), and
// "\&" keeps a line that begins with a dot or quote from being read as a request.
std::string roff(std::string_view text);

// Of completion scripts: whether the value is a file.
inline bool is_path(const OptionRow& row) { return row.placeholder == "PATH"; }
// Escapes text for a string in single quotes: a quote itself is replaced by `quote`, since shells
// differ in how they write it, and each character of `escaped` gets a backslash.
std::string quoted(std::string_view text, std::string_view escaped, std::string_view quote);
// A word as a POSIX shell needs it; most need no quotes.
std::string shell_word(const std::string& word);

}  // namespace ddprun::launcher
