// Runs Slurm's own commands: how long the job may still run, which nodes are out of service,
// requeue the job, say when it may start again, cancel it.
//
// A job is spelled for Slurm only here, by slurm/job_id.h. What changes the job needs a ShownJob.
// All answers are optional and every call has a deadline. The commands get an almost empty
// environment: an option in SQUEUE_FORMAT or a conda environment's LD_LIBRARY_PATH would change
// what they print.
//
// Thread: the loop's. A call that is under way may outlive this object.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "slurm/job_id.h"

namespace ddprun::launcher {

class SlurmCalls {
  public:
    SlurmCalls(boost::asio::io_context& loop, slurm::JobId job,
               const std::map<std::string, std::string>& environment);

    // The time until the limits of the job and of this step of it; slurm::kNoLimit where there is
    // none. Without an answer `done` is not called, and the caller goes on with what it knew.
    struct TimeLeft {
        std::chrono::seconds job, step;
    };
    void time_left(const std::string& step, std::function<void(TimeLeft)> done) const;
    // Which of these hosts are out of service, with Slurm's word for their state ("drained").
    // Without an answer `said` is not called.
    void out_of_service(const std::vector<std::string>& hosts,
                        std::function<void(std::map<std::string, std::string>)> said) const;

    // Possible errors of the following: unavailable, with the command's first line.
    boost::asio::awaitable<Result<slurm::ShownJob>> show_job() const;
    boost::asio::awaitable<Result<>> requeue(const slurm::ShownJob& job) const;
    // Of a job that was requeued and has not left its nodes yet.
    boost::asio::awaitable<Result<>> begin_in(const slurm::ShownJob& job,
                                              std::chrono::seconds delay) const;
    boost::asio::awaitable<Result<>> cancel(const slurm::ShownJob& job) const;
    // One a line, also those of other jobs (ShownJob::has_only_step).
    boost::asio::awaitable<Result<std::string>> steps(const slurm::ShownJob& job) const;
    // How long the site holds a requeued job.
    boost::asio::awaitable<Result<std::chrono::seconds>> requeue_delay() const;

  private:
    // `argument`: the last word of the command. It is called so often, as long as signals end it.
    boost::asio::awaitable<Result<std::string>> ask(const std::string& command,
                                                    const std::string& argument,
                                                    int tries = 1) const;
    static boost::asio::awaitable<std::optional<TimeLeft>> ask_time_left(SlurmCalls calls,
                                                                         std::string step);

    boost::asio::io_context& loop_;
    slurm::JobId job_;
    // The words of env(1) that set the command's environment.
    std::vector<std::string> environment_;
};

}  // namespace ddprun::launcher
