// Between what the agent asks of its keeper and the packets for it: a WorkerStart as a request, a
// failure as a sentence. The side of ddprun; no state, no thread.
#pragma once

#include <string>
#include <vector>

#include "agent/keeper/keeper.h"
#include "agent/keeper/keeper_protocol.h"

namespace ddprun::agent::keeper {

struct ForkRequest {
    Request request;
    std::string payload;
    std::vector<int> fds;  // behind the payload's; borrowed
};
ForkRequest make_fork_request(const WorkerStart& start);

// The error for Keeper::spawn, as its header lists them.
Error start_error(Stage stage, int error, const std::string& program);

// "what: No such file or directory", internal.
Error errno_error(const char* what, int error);

}  // namespace ddprun::agent::keeper
