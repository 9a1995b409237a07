// All processes that descend from this one, and how to kill them so that none is left.
//
// In rounds: SIGSTOP to all, until a look finds no new one (what is stopped forks no more), then
// SIGKILL to all, then reap. This process must be a subreaper: then everything that was started
// below it becomes its child in the end, and only "no child" (ECHILD) means that nothing is left.
// Reaps every child of this process, also those that others wait for. Thread: any, one at a time.
#pragma once

#include <sys/types.h>

#include <functional>
#include <vector>

#include "proto/time.h"

namespace ddprun::agent {

// Told each child that was reaped. May be empty.
using Reaped = std::function<void(pid_t pid, int wait_status)>;

// Pids of all descendants of `root`, by /proc; zombies too.
std::vector<pid_t> find_descendants(pid_t root);

// Reaps without waiting. True: there is no child left.
bool reap_children(const Reaped& reaped);

// One round. True: nothing is left. Else call again when a child has ended, or after a few
// milliseconds.
bool kill_round(const Reaped& reaped);

// Rounds until nothing is left, or `limit` has passed (false: something hangs in the kernel).
bool kill_all_descendants(Duration limit, const Reaped& reaped = {});

}  // namespace ddprun::agent
