// Describes processes that survive SIGKILL because they hang in the kernel. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"

namespace ddprun::agent {

// One process that should be dead.
struct StuckProcess {
    std::int64_t pid = 0;
    std::string name;      // as the kernel has it: up to 15 bytes
    char state = '?';      // of /proc/PID/stat; D: uninterruptible sleep
    std::string waits_in;  // function of the kernel; empty when not known
    int rank = -1;         // rank of the worker; -1: a process that a worker started
};

// From the text of /proc/PID/stat. pid is 0 when the text has another form.
StuckProcess read_process_stat(const std::string& stat);

// For example "rank 1 (process 4711, python3) is still alive 60.0 s after SIGKILL: it is in an
// uninterruptible sleep (D) in nfs_wait_bit_killable; and 2 more processes". Workers are named
// before other processes.
std::string stuck_sentence(std::vector<StuckProcess> processes, Duration since);

}  // namespace ddprun::agent
