// Recognizes janitors: helper processes of Python and PyTorch that remove what their processes
// leave behind. They know what belongs to whom, so they are killed last.
//
// Used by the keeper process, or by ddprun in its place.
#pragma once

#include <sys/types.h>

#include "base/time.h"

namespace ddprun::agent {

enum class Janitor {
    none,
    unknown,     // it has not stopped yet: ask again
    of_python,   // resource tracker of multiprocessing: semaphores, shared memory
    of_tensors,  // PyTorch's torch_shm_manager: tensors in shared files
};

// Which kind of janitor a process is. The process must have been sent SIGSTOP. The function never
// waits, even if the process hangs in the kernel.
Janitor janitor(pid_t pid);

// Whether it looks like a janitor: it has the name of one and, if it is Python's, ignores SIGINT
// and SIGTERM. The process need not be stopped.
bool may_be_janitor(pid_t pid);

// How long a janitor may work after all other processes are dead. Python's needs milliseconds, or a
// tenth of a second if it has just started. PyTorch's waits two seconds for new processes first, so
// it is allowed to work only where nobody else can do it.
constexpr Duration patience_with(Janitor kind) {
    return kind == Janitor::of_tensors ? std::chrono::seconds{3} : std::chrono::seconds{1};
}

}  // namespace ddprun::agent
