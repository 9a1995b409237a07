// The texts made from the option table and from the manual's sections: --help and the manual page.
// Pure.
#pragma once

#include <string>
#include <string_view>

namespace ddprun::launcher {

enum class HelpLength { frequent, all };  // --help: the options that people use; --help-all

// It names each default, torchrun's different default, and why they differ. Behind the options
// come exit codes, files, the workers' variables, signals and examples.
std::string help_text(HelpLength length);

// All of it as a manual page in roff's man macros.
std::string man_page(std::string_view version);

}  // namespace ddprun::launcher
