// What is said of processes that outlive SIGKILL, since they hang in the kernel. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"

namespace ddprun::agent {

struct StuckProcess {
    std::int64_t pid = 0;
    std::string name;      // as the kernel has it, 15 bytes
    char state = '?';      // of /proc/PID/stat: D sleeps where nothing can wake it
    std::string waits_in;  // the kernel's function, empty where it does not say
    int rank = -1;         // of the worker that it is; -1: something that a worker started
};

// From the text of /proc/PID/stat; pid 0: it is no such text.
StuckProcess read_process_stat(const std::string& stat);

// "rank 1 (process 4711, python3) has outlived SIGKILL by 60.0 s: it is in an uninterruptible sleep
// (D) in nfs_wait_bit_killable; and 2 more processes". Workers are named before others.
std::string stuck_sentence(std::vector<StuckProcess> processes, Duration since);

}  // namespace ddprun::agent
