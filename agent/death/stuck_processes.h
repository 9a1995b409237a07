// The processes below the keeper that still live, as /proc shows them: what a sweep that does not
// end is waiting for. Shell; any thread; never waits.
#pragma once

#include <sys/types.h>

#include <map>
#include <vector>

#include "agent/death/stuck.h"

namespace ddprun::agent {

// Zombies are none. `ranks`: which process is which worker.
std::vector<StuckProcess> find_stuck(pid_t keeper, const std::map<std::int64_t, int>& ranks);

}  // namespace ddprun::agent
