// What a worker does between fork and exec, and how the keeper learns what became of it.
//
// The child gets a close-on-exec pipe: its end without a byte means that the program runs; else a
// Failure came, and the child has left. A plain fork, not vfork: an exec that hangs (a stalled
// network file system) must not stop the keeper, which has a deadline to keep. Keeper process only.
#pragma once

#include <sys/types.h>

#include <vector>

#include "agent/keeper_protocol.h"
#include "proto/time.h"

namespace ddprun::agent::keeper {

struct Failure {
    Stage stage{};
    int error = 0;
};

struct Child {
    pid_t pid = -1;
    UniqueFd pidfd;      // -1 on old kernels
    UniqueFd exec_pipe;  // readable when the program runs or could not be started
    Failure failure;     // of pid -1
};

// What the child needs beyond its request.
struct ChildContext {
    const Request* request = nullptr;
    const WorkerPayload* payload = nullptr;
    const std::vector<UniqueFd>* fds = nullptr;  // as they came with the request
    Time deadline = kNever;
};

Child fork_worker(const ChildContext& context);

// Once exec_pipe is readable: whether there is a Failure in it.
bool read_failure(int exec_pipe, Failure& failure);

}  // namespace ddprun::agent::keeper
