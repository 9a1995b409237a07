// Looks at a living process and its children: where each thread is, in Python and in the kernel.
//
// The lines of a process of Python begin with the user's own functions:
//
//     in Trainer.evaluate (eval.py:88), called by main (train.py:20)
//     thread 812 (python3) sleeps in clock_nanosleep; kernel: hrtimer_nanosleep
//         sleep_until (site-packages/x.py:3)
//         Trainer.evaluate (eval.py:88)
//
// Thread: one of its own. /proc and the memory of a process may let nobody read them for as long as
// the process hangs in the kernel.
#pragma once

#include <cstdint>
#include <vector>

#include "diagnosis/stacks/kernel_stack.h"
#include "diagnosis/stacks/python_stack.h"

namespace ddprun::agent {

struct ProcessLook {
    StackLines lines;
    // Processes whose own functions are not in the lines: debugging tools may show them.
    std::vector<std::int64_t> for_tools;
    std::vector<std::int64_t> unread;  // of these, the ones that run Python
    std::vector<std::int64_t> python;  // all that run Python
};

// A worker may be a script that starts the real program; a program with PyTorch has forty threads,
// most of them idle.
struct LookLimits {
    std::size_t processes = 4, threads = 16, frames = 10;  // frames: of a thread
};
// For who asks about one worker, and not for a report about many.
inline constexpr LookLimits kWideLook{8, 256, 50};

ProcessLook look_at_process(std::int64_t pid, const LookLimits& limits = {});

// Adds the functions of a thread below the line that names it.
void add_frames(StackLines& lines, const PythonThread& thread,
                std::size_t most = LookLimits{}.frames);

// What the user reads first: the own functions of a thread, the innermost first, at most five, and
// what that one has called of torch.distributed: "train (train.py:9, all_reduce)". Empty when there
// are none.
std::string own_frames(const PythonThread& thread);

}  // namespace ddprun::agent
