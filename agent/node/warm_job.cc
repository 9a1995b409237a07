// Makes an example of a worker, and looks at its command line.
#include "agent/node/warm_job.h"

#include <utility>

#include "agent/host/hardware.h"
#include "agent/workers/python_command.h"
#include "agent/workers/worker_request.h"

namespace ddprun::agent {

WorkerStarts::Job warm_job(warm::Mode mode, bool opens_recorder, const WorkerPlan& plan,
                           int workers) {
    WorkerStarts::Job job;
    job.mode = mode;
    job.needs_bootstrap = opens_recorder || plan.framework_stop || !plan.set_aside_torn.empty();
    job.worker = worker_start(plan, 0, 0);
    // Only Python's workers cost more than this.
    if (mode == warm::Mode::off || !python_command(job.worker.argv)) return job;
    EnvironmentToCome environment = environment_to_come(plan);
    job.worker.environment = std::move(environment.example);
    job.placed = std::move(environment.placed);
    job.workers = workers;
    job.cpus = static_cast<int>(allowed_cpus().size());
    return job;
}

// PyTorch ends a worker that cannot make its pipe, and a program that is started by another one may
// run in a container, where our folders are not.
RecorderOptions recorder_options(RecorderOptions wanted, const WorkerPlan& plan) {
    wanted.nccl_pipe =
        wanted.nccl_pipe && python_command(worker_start(plan, 0, 0).argv).has_value();
    return wanted;
}

}  // namespace ddprun::agent
