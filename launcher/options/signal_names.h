// Signals by name, as Python spells them ("SIGTERM"). Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ddprun::launcher {

// Stop the job whatever --signals-to-handle says: without them ddprun would die and its workers be
// killed without a word.
std::vector<int> always_handled();

// The workers' business where --signals-to-handle does not name them: Slurm warns with them
// (--signal=USR1@60, scancel -s USR1), and users of their own.
std::vector<int> passed_on_unless_named();

// --signals-to-handle: the numbers, each once. Possible errors: usage: no such signal (with the
// nearest name), or one that cannot be handled.
Result<std::vector<int>> read_signals(std::string_view text);

// The same with or without SIG in front, as Slurm's own options take it; and one alone.
Result<std::vector<int>> read_signals_freely(std::string_view text);
Result<int> read_signal(std::string_view text);

}  // namespace ddprun::launcher
