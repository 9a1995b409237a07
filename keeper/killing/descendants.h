// Finds and reaps the processes that descend from this one.
//
// This process must be a subreaper (prctl(2), PR_SET_CHILD_SUBREAPER). Then every orphan below it
// becomes its child, and the error ECHILD of waitpid() proves that nothing is left.
//
// Thread: any, one at a time.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace ddprun::agent {

// The pids of all descendants of `root`, read from /proc. Zombies are included. None where /proc is
// not ours (own_proc.h).
std::vector<pid_t> find_descendants(pid_t root);

// The pids of all children of a process, likewise.
std::vector<pid_t> find_children(pid_t parent);

// The threads of a process, the main thread first. Empty when the process is gone.
std::vector<std::int64_t> threads_of(std::int64_t pid);

// Whether this is a child of this process that has not ended.
bool is_living_child(pid_t pid);

// Called for each child that was reaped. May be empty.
using Reaped = std::function<void(pid_t pid, int wait_status)>;

// Reaps all children that have ended, without waiting; also children that other code waits for.
// Returns true when this process has no children left.
bool reap_children(const Reaped& reaped);

}  // namespace ddprun::agent
