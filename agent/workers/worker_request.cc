// Takes a worker's part of the plan.
#include "agent/workers/worker_request.h"

#include <unistd.h>

#include "agent/workers/worker_arguments.h"

namespace ddprun::agent {

WorkerStart worker_start(const WorkerPlan& plan, int index, int local_rank) {
    WorkerStart start;
    start.argv =
        worker_arguments(plan.argv, plan.first_argument, local_rank, plan.collapse_dollars);
    if (!plan.cpus.empty()) start.cpus = plan.cpus[static_cast<std::size_t>(index)];
    start.stdin_fd = STDIN_FILENO;
    start.nofile_soft = plan.nofile_soft;
    start.foreground = plan.foreground;
    start.by_turns = plan.by_turns;
    return start;
}

}  // namespace ddprun::agent
