// Runs Slurm's own commands: how long the job may still run, which nodes are out of service,
// requeue the job, cancel it.
//
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

namespace ddprun::launcher {

class SlurmCalls {
  public:
    SlurmCalls(boost::asio::io_context& loop, std::string job_id,
               const std::map<std::string, std::string>& environment);

    // The time until the job's limit; slurm::kNoLimit if it has none. Without an answer `done` is
    // not called, and the caller goes on with what it knew.
    void time_left(std::function<void(std::chrono::seconds)> done) const;
    // Which of these hosts are out of service, with Slurm's word for their state ("drained").
    // Without an answer `said` is not called.
    void out_of_service(const std::vector<std::string>& hosts,
                        std::function<void(std::map<std::string, std::string>)> said) const;
    // How often Slurm has requeued the job; nothing without an answer.
    void restarts(std::function<void(std::optional<int>)> done) const;
    // Puts the job back into the queue. Possible errors: unavailable, with scontrol's first line.
    void requeue(std::function<void(Result<>)> done) const;

    // Possible errors of the following: unavailable, with the command's first line.
    // The text of `scontrol show job`.
    boost::asio::awaitable<Result<std::string>> show_job() const;
    boost::asio::awaitable<Result<std::string>> steps() const;  // "8812.0", one a line
    boost::asio::awaitable<Result<>> cancel() const;

  private:
    boost::asio::awaitable<Result<std::string>> ask(const std::string& command,
                                                    const std::string& argument) const;
    // `argument`: the last word of the command.
    void call(const std::string& command, const std::string& argument,
              std::function<void(Result<std::string>)> done) const;

    boost::asio::io_context& loop_;
    std::string job_id_;
    // The words of env(1) that set the command's environment.
    std::vector<std::string> environment_;
};

}  // namespace ddprun::launcher
