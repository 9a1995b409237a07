// Lists the processes below the keeper that still live: what a sweep that does not end is waiting
// for. Source: /proc. Thread: any; it never waits.
#pragma once

#include <sys/types.h>

#include <map>
#include <vector>

#include "agent/death/stuck.h"

namespace ddprun::agent {

// Zombies are left out. `ranks` tells which process is which worker.
std::vector<StuckProcess> find_stuck(pid_t keeper, const std::map<std::int64_t, int>& ranks);

}  // namespace ddprun::agent
