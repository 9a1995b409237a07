// Signals by name, as Python spells them ("SIGTERM"). Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ddprun::launcher {

// The signals that always stop the job, whatever --signals-to-handle says. If they were not
// handled, ddprun would die of them and its workers would be killed without time for a last
// snapshot.
std::vector<int> always_handled();

// The signals that go to the workers and stop nothing, unless --signals-to-handle names them. Slurm
// uses them as warnings (--signal=USR1@60, scancel -s USR1), and users have meanings of their own
// for them.
std::vector<int> passed_on_unless_named();

// Reads --signals-to-handle: the numbers, each once. Possible errors: usage: no such signal (with
// the nearest name), or one that cannot be handled.
Result<std::vector<int>> read_signals(std::string_view text);

// The same, with or without SIG in front, as Slurm's own options accept them: a list, and a single
// one.
Result<std::vector<int>> read_signals_freely(std::string_view text);
Result<int> read_signal(std::string_view text);

}  // namespace ddprun::launcher
