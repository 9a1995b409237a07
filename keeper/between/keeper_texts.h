// Translates a WorkerStart into the packet for the keeper, and the keeper's failures into
// sentences. Runs in ddprun. No state, no thread.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "keeper/between/keeper_protocol.h"
#include "keeper/between/worker_start.h"

namespace ddprun::agent::keeper {

// A packet of this kind; the times as far as it has them.
Request of(RequestKind kind, Time time = Time{}, Duration lease = {});

// A packet that asks for a worker. `fds` are borrowed from the WorkerStart; they follow the
// payload's descriptor.
struct ForkRequest {
    Request request;
    std::string payload;
    std::vector<int> fds;
};
ForkRequest make_fork_request(const WorkerStart& start);

// The error for Keeper::spawn(); keeper.h lists the codes.
Error start_error(Stage stage, int error, const std::string& program);

// An `internal` error with a sentence such as "cannot create a socketpair for the keeper: Too many
// open files".
Error errno_error(const char* what, int error);

}  // namespace ddprun::agent::keeper
