// The helpers of libraries that remove what their processes leave, once those are gone. They know
// what belongs to whom, so they are killed last. Shell; keeper process, or ddprun in its place.
#pragma once

#include <sys/types.h>

#include "base/time.h"

namespace ddprun::agent {

enum class Janitor {
    none,
    unknown,     // it has not stopped yet: ask again
    of_python,   // the resource tracker of multiprocessing: semaphores, shared memory
    of_tensors,  // PyTorch's torch_shm_manager: tensors that processes share by file
};

// Of a process that has been sent SIGSTOP. Never waits, not for one that hangs in the kernel either.
Janitor janitor(pid_t pid);

// How long it may take when all others are dead. Python's takes a tenth of a second if it has just
// begun, else milliseconds. PyTorch's waits two seconds for processes to come, so it is let do its
// work only where nobody else can do it.
constexpr Duration patience_with(Janitor kind) {
    return kind == Janitor::of_tensors ? std::chrono::seconds{3} : std::chrono::seconds{1};
}

}  // namespace ddprun::agent
