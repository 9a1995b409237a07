// One look at a worker from outside. Pure values.
#pragma once

#include <cstdint>
#include <string>

#include "diagnosis/standstill/lost_network.h"

namespace ddprun::agent {

// In which kind of system call a thread waits.
enum class WaitingIn { anything, timer, reading, writing, child };

struct WorkerSample {
    bool is_known = false;                    // could be read
    bool has_ended = false;                   // nothing else counts then
    char state = '?';                         // of its main thread, as in proc(5)
    WaitingIn waiting = WaitingIn::anything;  // its main thread
    std::uint64_t cpu = 0;    // ticks of a hundredth of a second, of the whole process
    std::uint64_t moved = 0;  // bytes, read and written by the whole process
    std::uint64_t sent = 0;   // bytes, written by Gloo
    // Collectives of Gloo that it has begun and that have not ended, as far as they can be told
    // apart: at most one for each of its two threads.
    int pending = 0;
};

// Where a worker is in its program. Read more seldom than the rest.
struct ProgramPlace {
    std::uint32_t place = 0;  // a hash of the user's innermost line and what it calls; 0: not known
    bool meets = false;       // it is in init_process_group() or new_group()
    std::uint32_t stack = 0;  // a hash of all functions of its main thread; 0: not known
    std::uint64_t children_cpu = 0;  // ticks of a hundredth of a second
    LostConnection lost = {};        // a connection of it on which nothing is acknowledged
    std::string call = {};  // of the trainer library, in which it is; empty: none, or not known
};

}  // namespace ddprun::agent
