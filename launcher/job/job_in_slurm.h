// What a job asks of Slurm while it runs, and does there at its end; slurm_calls.h knows how.
// Nothing here is on the way of a start or a restart.
//
// Thread: the loop's. `input` and `voice` must outlive it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <optional>

#include "base/time.h"
#include "launcher/in_slurm/slurm_calls.h"
#include "launcher/job/job.h"
#include "launcher/job/job_voice.h"
#include "rendezvous/service/service.h"

namespace ddprun::launcher {

class JobInSlurm {
  public:
    JobInSlurm(boost::asio::io_context& loop, const JobInput& input, JobVoice& voice);

    // When the job's time is over, if Slurm answers; none: it has no end.
    void find_job_end(std::function<void(std::optional<Time>)> done) const;
    // The service asks for nodes out of service, and to requeue.
    void serve(rendezvous::Service& service);
    // Says, a lease after the start, if the loss of a node would end the step in spite of --nnodes.
    void watch_for_loss(const rendezvous::Service& service);

    // For the very end, by the node that leads: nobody may have the job in hand any more
    // (headless.h). Waits.
    void end_if_headless();

  private:
    void requeue(std::function<void()> done);
    std::string job() const { return "job " + input_.slurm_job_id; }

    boost::asio::io_context& loop_;
    const JobInput& input_;
    JobVoice& voice_;
    SlurmCalls calls_;
    boost::asio::steady_timer first_look_;
    bool requeued_ = false;
};

}  // namespace ddprun::launcher
