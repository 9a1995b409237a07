// Which packages of the list (bootstrap/_ddprun_proved.py) the workers have imported, as they have
// recorded it. Pure.
//
// A record (bootstrap/_ddprun_record.py) has a line for each such import: the module, a tab, and
// the state of the process in hexadecimal digits, which only the server reads.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ddprun::agent::warm {

// The modules in a record. A worker may have written anything into it: what is no complete line of
// this form is skipped.
std::vector<std::string> imports_in(std::string_view record);

// Whether an import is in more of the records than it was: the server imports what is in all.
bool has_more(const std::vector<std::string>& records, const std::vector<std::string>& than);

}  // namespace ddprun::agent::warm
