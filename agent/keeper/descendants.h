// Finds all processes that descend from this one, and kills them so that none is left, nor anything
// that they kept in shared memory.
//
// The work is done in rounds: SIGSTOP to all until no new process appears (a stopped process cannot
// fork), then SIGKILL to all, then reap.
//
// This process must be a subreaper (prctl(2), PR_SET_CHILD_SUBREAPER). Then every orphan below it
// becomes its child, and the error ECHILD of waitpid() proves that nothing is left. The functions
// reap every child of this process, also children that other code waits for. Janitors (janitor.h)
// get time to do their work and are killed last.
//
// Thread: any, one at a time.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <vector>

#include "agent/keeper/janitor.h"
#include "agent/keeper/shared_memory.h"
#include "base/time.h"

namespace ddprun::agent {

// Called for each child that was reaped. May be empty.
using Reaped = std::function<void(pid_t pid, int wait_status)>;

// The pids of all descendants of `root`, read from /proc. Zombies are included.
std::vector<pid_t> find_descendants(pid_t root);

// Reaps all children that have ended, without waiting. Returns true when this process has no
// children left.
bool reap_children(const Reaped& reaped);

// Kills generations, one after the other. When nothing of a generation is left, its records are
// cleared for the next one.
class Killing {
  public:
    // A process of the generation was reaped outside a round.
    void reaped(pid_t pid) { memory_.belongs(pid); }
    // Does one round. Returns true when nothing is left. Otherwise call it again when a child has
    // ended, or after a few milliseconds.
    bool round(const Reaped& reaped);

  private:
    std::vector<pid_t> stop_all(Time now) const;
    bool spare(pid_t pid, Time now);

    SharedMemory memory_;
    // A janitor, and how long it may work.
    struct Spared {
        Janitor kind;
        Time until;
    };
    std::map<pid_t, Spared> janitors_;
    Time began_ = kNever;  // of the first round for this generation; kNever: no killing in progress
};

// Repeats rounds until nothing is left. Returns false when `limit` has passed, which means that a
// process hangs in the kernel. Blocks.
bool kill_all_descendants(Duration limit, const Reaped& reaped = {});

}  // namespace ddprun::agent
