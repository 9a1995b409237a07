// What a job asks of Slurm while it runs, and what it does there at its end. slurm_calls.h runs the
// commands. A start or a restart never waits for any of this.
//
// Thread: the loop's. `input` and `voice` must outlive the object.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <optional>

#include "base/time.h"
#include "launcher/in_slurm/slurm_calls.h"
#include "launcher/job/job_voice.h"
#include "launcher/plan/job_input.h"
#include "rendezvous/service/service.h"

namespace ddprun::launcher {

class JobInSlurm {
  public:
    JobInSlurm(boost::asio::io_context& loop, const JobInput& input, JobVoice& voice);

    // Asks when a time limit ends it: the job's, or the step's (srun --time) if that comes first.
    // Empty: it has no limit. Without an answer, or without news, `done` is not called.
    void find_job_end(std::function<void(std::optional<Time>)> done);
    // Lets the service ask which nodes are out of service, and ask for a requeue.
    void serve(rendezvous::Service& service);
    // Warns, one lease after the start, if the loss of a node would end the step although --nnodes
    // lets the job go on with fewer nodes.
    void watch_for_loss(const rendezvous::Service& service);

    // Cancels the allocation if its batch host is lost (headless.h). Called at the very end by the
    // node that leads. Blocks.
    void end_if_headless();

  private:
    boost::asio::awaitable<void> requeue(bool progressed);
    boost::asio::awaitable<std::string> begin_soon(const slurm::ShownJob& job, bool progressed);
    std::optional<Time> nearer_end(const SlurmCalls::TimeLeft& left);

    boost::asio::io_context& loop_;
    const JobInput& input_;
    JobVoice& voice_;
    SlurmCalls calls_;
    Time began_;
    boost::asio::steady_timer first_look_;
    bool requeued_ = false;
    bool job_end_is_known_ = false;  // and does not change
    bool step_limit_is_told_ = false;
};

}  // namespace ddprun::launcher
