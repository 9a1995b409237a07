// Ends the allocation of a job whose batch host is lost.
//
// If the host of the batch script fails, srun is lost with it. Slurm then does not end the job: the
// remaining nodes stay allocated until the time limit. So the node that leads at the end cancels
// the allocation, once, when no worker lives and the end stands in the ledger.
//
// The proof is that Slurm itself has taken the batch host out of the job (slurm/job_id.h).
// Slurm notices this minutes after the loss. ddprun waits for it only while srun's host does not
// answer: a host that answers still has its batch script, or Slurm ends it. Other signs do not
// work: a step outlives its srun, slurmstepd keeps the tasks' pipes open, and srun's port answers
// like any other port of its host.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "base/note.h"
#include "launcher/in_slurm/slurm_calls.h"

namespace ddprun::launcher {

// What to look at and how long. The times are defaults, shorter in tests.
struct HeadlessConfig {
    slurm::JobId job;
    std::string step_id;
    int restart_count = 0;  // of this allocation
    std::string srun_address;
    std::uint16_t port = 0;  // where the nodes meet: not blocked by a firewall, if the host lives
    std::chrono::milliseconds between{15'000};  // between two questions to Slurm
    std::chrono::milliseconds patience{
        900'000};  // how long to wait for Slurm; its SlurmdTimeout is 300 s by default
    std::chrono::milliseconds connecting{5'000};  // how long a connection to srun's host may take
};

// Runs on the loop's thread. Returns when the allocation has been ended or is not to be ended.
// Every wait in it has a deadline. `slurm` must live until it returns.
boost::asio::awaitable<void> end_if_headless(
    HeadlessConfig config, const SlurmCalls& slurm,
    std::function<void(Note::Level, const std::string&)> say);

}  // namespace ddprun::launcher
