// The end of a job that nobody has in hand any more: the host of its batch script is lost, and srun
// with it; the nodes that are left would stay allocated until the time limit. Who leads at the end
// then ends the allocation, once, when no worker lives and the end stands in the ledger.
//
// The sign is Slurm's own word: it has taken the batch host out of the job (slurm/batch_script.h).
// It says so minutes after the loss, so that is waited for, but only while srun's host does not
// answer either; a host that answers has its script, or Slurm ends it. Nothing else tells: a step
// outlives its srun, slurmstepd keeps the tasks' pipes open, and srun's port says the same as any
// other of its host.
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

struct HeadlessConfig {
    std::string job_id, step_id;
    std::string srun_address;
    std::uint16_t port = 0;  // of that host, where the nodes meet: not closed to us, if it lives
    std::chrono::milliseconds between{15'000};  // questions to Slurm
    std::chrono::milliseconds patience{
        900'000};  // of waiting for Slurm; SlurmdTimeout is 300 by default
    std::chrono::milliseconds connecting{5'000};
};

// Thread: the loop's. Returns when the allocation has been ended, or is not to be; each wait in it
// has a deadline.
boost::asio::awaitable<void> end_if_headless(
    HeadlessConfig config, const SlurmCalls& slurm,
    std::function<void(Note::Level, const std::string&)> say);

}  // namespace ddprun::launcher
