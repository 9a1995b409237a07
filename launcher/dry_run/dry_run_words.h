// How single values are written in the text of a dry run. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/time.h"
#include "launcher/dry_run/known.h"

namespace ddprun::launcher {

// A value with its note: "4  (if all 4 nodes come)", "not known yet: found when the nodes meet".
std::string text_of(const Known<std::string>& known);
std::string text_of(const Known<int>& known);

// "10 s", "2.5 s": at most three decimals, no trailing zeros.
std::string seconds_text(Duration exact);
std::string joined(const std::vector<std::string>& words, const char* between);

// The command in a form that can be pasted into a shell. Only words with other than plain
// characters are quoted, since most need no quotes and are easier to read without.
std::string shell_line(const std::vector<std::string>& argv);

}  // namespace ddprun::launcher
