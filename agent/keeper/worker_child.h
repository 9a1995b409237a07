// What a worker does between clone and exec, and how the keeper learns what became of it.
//
// The child gets a close-on-exec pipe: its end without a byte means that the program runs; else a
// Failure came, and the child leaves.
//
// Until then the child shares the keeper's memory, as with posix_spawn: nothing is copied, and exec
// has nothing to take down, which is a fifth of a start. But the keeper does not wait for it, for an
// exec that hangs (a stalled network file system) must not stop one who has a deadline to keep. So
// the child has a stack of its own, makes its system calls by hand (bare_call.h), allocates nothing
// and reads only what was made for it, which the keeper leaves alone until the pipe has ended: in
// the kernel that comes after the memory was let go of, at exec as at exit. Under a sanitizer, and
// on processors without bare calls, it is a fork. Keeper process only.
#pragma once

#include <sys/types.h>

#include <memory>
#include <vector>

#include "agent/keeper/keeper_protocol.h"
#include "base/time.h"

namespace ddprun::agent::keeper {

struct Failure {
    Stage stage{};
    int error = 0;
};

struct Child {
    pid_t pid = -1;
    UniqueFd pidfd;                      // -1 on old kernels
    UniqueFd exec_pipe;                  // readable when the program runs or could not be started
    std::shared_ptr<const void> memory;  // the child's until exec_pipe has ended or it is reaped
    Failure failure;                     // of pid -1
};

// `fds`: as they came with the request, the payload's first.
Child start_worker(const Request& request, WorkerPayload payload, const std::vector<UniqueFd>& fds,
                   Time deadline);

// Once exec_pipe is readable: whether there is a Failure in it. If so it has not ended yet.
bool read_failure(int exec_pipe, Failure& failure);

}  // namespace ddprun::agent::keeper
