// All processes that descend from this one, and how to kill them so that none is left, nor what
// they had in shared memory.
//
// In rounds: SIGSTOP to all, until a look finds no new one (what is stopped forks no more), then
// SIGKILL to all, then reap. This process must be a subreaper: then everything that was started
// below it becomes its child in the end, and only "no child" (ECHILD) means that nothing is left.
// Reaps every child of this process, also those that others wait for. Janitors (janitor.h) are
// killed last, when they had time to do their work. Thread: any, one at a time.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <vector>

#include "agent/keeper/janitor.h"
#include "agent/keeper/shared_memory.h"
#include "base/time.h"

namespace ddprun::agent {

// Told each child that was reaped. May be empty.
using Reaped = std::function<void(pid_t pid, int wait_status)>;

// Pids of all descendants of `root`, by /proc; zombies too.
std::vector<pid_t> find_descendants(pid_t root);

// Reaps without waiting. True: there is no child left.
bool reap_children(const Reaped& reaped);

// One after the other; what is known of one generation is forgotten when nothing of it is left.
class Killing {
  public:
    // A process of the generation has been reaped outside a round.
    void reaped(pid_t pid) { memory_.belongs(pid); }
    // One round. True: nothing is left. Else call again when a child has ended, or after a few
    // milliseconds.
    bool round(const Reaped& reaped);

  private:
    std::vector<pid_t> stop_all(Time now) const;
    bool spare(pid_t pid, Time now);

    SharedMemory memory_;
    struct Spared {
        Janitor kind;
        Time until;
    };
    std::map<pid_t, Spared> janitors_;
    Time began_ = kNever;
};

// Rounds until nothing is left, or `limit` has passed (false: something hangs in the kernel).
bool kill_all_descendants(Duration limit, const Reaped& reaped = {});

}  // namespace ddprun::agent
