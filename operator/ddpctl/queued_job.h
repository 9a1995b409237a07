// A job that waits in Slurm's queue: it has been requeued, and no process of it is there to ask.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "operator/ddpctl/found_job.h"
#include "proto/control.pb.h"

namespace ddprun::launcher {

struct QueuedJob {
    std::string spelled;  // "8812", "1001_3": the word for Slurm's commands
    std::string start;    // as Slurm prints it; empty: Slurm does not know it yet
    std::string reason;   // "BeginTime"
};

// The job in the output of `squeue -h --me -t PENDING -o %A|%i|%S|%r`. Pure.
std::optional<QueuedJob> find_queued(const FoundJob& job, std::string_view listed);
// "job 8812 waits in Slurm's queue (BeginTime), until … at the earliest". Pure.
std::string queued_sentence(const QueuedJob& queued);
// As `ddpctl status` shows it. Pure.
control::StatusReply queued_status(const FoundJob& job, const QueuedJob& queued, Duration now);
bool is_queued(const control::StatusReply& job);

// Asks Slurm. Nothing: it is not there, or there is no answer. Blocks, 5 s at most.
std::optional<QueuedJob> ask_queue(const FoundJob& job);
// Cancels it. Possible errors: unavailable. Blocks as long as Slurm does, 20 s at most.
Result<> cancel_queued(const QueuedJob& queued);

}  // namespace ddprun::launcher
