// What is asked of Slurm's own commands: how long the job may still run, which of its nodes are out
// of service, who has the job in hand, to put it back into the queue, and to end it. All are
// optional and have a deadline; the commands see nothing of our environment but what they need to
// start (an option in SQUEUE_FORMAT, a conda's LD_LIBRARY_PATH would change them).
//
// Thread: the loop's. What is under way outlives the object.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"

namespace ddprun::launcher {

class SlurmCalls {
  public:
    SlurmCalls(boost::asio::io_context& loop, std::string job_id,
               const std::map<std::string, std::string>& environment);

    // slurm::kNoLimit where the job has none. Without an answer `done` is not called: what was
    // known before holds.
    void time_left(std::function<void(std::chrono::seconds)> done) const;
    // Of these hosts, with their states. Without an answer `said` is not called.
    void out_of_service(const std::vector<std::string>& hosts,
                        std::function<void(std::map<std::string, std::string>)> said) const;
    // Possible errors: unavailable, with what scontrol says.
    void requeue(std::function<void(Result<>)> done) const;

    // Possible errors of these: unavailable, with what the command says.
    boost::asio::awaitable<Result<std::string>> show_job() const;  // as scontrol does
    boost::asio::awaitable<Result<std::string>> steps() const;     // "8812.0", a line each
    boost::asio::awaitable<Result<>> cancel() const;

  private:
    boost::asio::awaitable<Result<std::string>> ask(const std::string& command,
                                                    const std::string& argument) const;
    // `argument`: the last word of the command.
    void call(const std::string& command, const std::string& argument,
              std::function<void(Result<std::string>)> done) const;

    boost::asio::io_context& loop_;
    std::string job_id_;
    std::vector<std::string> environment_;  // env's words
};

}  // namespace ddprun::launcher
