// Starts a worker process: what happens between clone and exec, and how the keeper learns the
// result. Keeper process only.
//
// The result comes through a pipe that closes at exec. If the pipe ends without a byte, the program
// runs. Otherwise it carries a Failure, and the child leaves.
//
// Until exec the child shares the keeper's memory, as with posix_spawn(). Nothing is copied, and
// exec has no memory to release, which saves about a fifth of the time of a start. Unlike
// posix_spawn(), the keeper does not wait for exec: an exec that hangs (a stalled network file
// system) must not stop a process that has to keep a deadline.
//
// So the child follows strict rules. It has a stack of its own, makes its system calls without the
// C library (bare_call.h), allocates nothing, and reads only memory that was prepared for it. The
// keeper leaves this memory alone until the pipe has ended. This is safe because the kernel closes
// descriptors after it has released the memory, at exec as at exit.
//
// With sanitizers, and on processors without bare calls, the child is a normal fork.
#pragma once

#include <sys/types.h>

#include <memory>
#include <vector>

#include "base/time.h"
#include "keeper/between/keeper_protocol.h"

namespace ddprun::agent::keeper {

// The step that failed, and its errno.
struct Failure {
    Stage stage{};
    int error = 0;
};

// A worker that has been started, or the reason why not.
struct Child {
    pid_t pid = -1;
    UniqueFd pidfd;                      // -1 on old kernels
    UniqueFd exec_pipe;                  // readable when the program runs or has failed to start
    std::shared_ptr<const void> memory;  // keep until exec_pipe has ended or it is reaped
    Failure failure;                     // if pid is -1
};

// `fds` are the descriptors of the request, the payload's first. Does not wait for exec.
Child start_worker(const Request& request, WorkerPayload payload, const std::vector<UniqueFd>& fds,
                   Time deadline);

// Call when exec_pipe is readable. Returns whether there is a Failure. (If there is none, the pipe
// has ended.)
bool read_failure(int exec_pipe, Failure& failure);

}  // namespace ddprun::agent::keeper
