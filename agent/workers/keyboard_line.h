// The line about who has the keyboard, for several workers at one terminal. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "keeper/keyboard.h"

namespace ddprun::agent {

// For example "rank 1 has the keyboard; ranks 0 and 2 wait for it". `ours`: ddprun is in the
// foreground. Empty when there is nothing to say.
std::string keyboard_line(const Keyboard& keyboard, bool ours,
                          const std::map<std::int64_t, int>& ranks_by_pid);

}  // namespace ddprun::agent
