// The texts made from the option table and from the manual's sections: -h, --help, --help-all and
// the manual page.
// Pure.
#pragma once

#include <string>
#include <string_view>

namespace ddprun::launcher {

// -h: the twelve most used options, a line each, and three examples.
std::string brief_help();

// --help: the same options in full, examples and exit codes; --help-all: everything.
enum class HelpLength { frequent, all };
// It names each default, torchrun's different default, and why they differ.
std::string help_text(HelpLength length);

// All of it as a manual page in roff's man macros.
std::string man_page(std::string_view version);

}  // namespace ddprun::launcher
