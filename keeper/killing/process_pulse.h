// What shows from outside that a process which owes an answer is slow and not frozen: its first
// thread, which has to answer, uses the processor, or waits for one. What other threads do counts
// only where /proc does not tell them apart. ddprun and the keeper judge each other by it. Source:
// clock_getcpuclockid(3), proc_pid_stat(5), "schedstat" in the kernel's
// Documentation/scheduler/sched-stats. Thread: any; it never waits.
#pragma once

#include "base/time.h"

namespace ddprun::agent::keeper {

struct Pulse {
    Duration cpu_time{};  // since its start
    // It runs, or would if it got a processor. On a loaded host it may be all that a process does
    // for seconds.
    bool runnable = false;
    // A terminal or Slurm has told it to stop and not yet to continue (SIGTSTP). Slurm does so 2 s
    // before it stops all processes of a job, the keeper too.
    bool told_to_stop = false;
};

// The default Pulse if the process has gone. Where /proc is not ours, `runnable` stays false.
Pulse pulse_of(int pid);

// The process has done something between these looks, or would have.
constexpr bool is_slow(const Pulse& before, const Pulse& now) {
    return now.runnable || now.told_to_stop || now.cpu_time > before.cpu_time;
}

// A process that is slow without an answer for so long counts as frozen: one that spins does its
// work no more than one that stands still.
inline constexpr Duration kSlowAtMost = std::chrono::seconds{60};

}  // namespace ddprun::agent::keeper
