// Judges one worker's death: from everything that its node knows to what the report says. Pure.
//
// When did it die? As a rule, when the keeper reaped it. But a failed program may take long to end:
// a destructor closes its connections, other workers notice and fail, and they may exit before it.
// So if the worker left an error file, the time of this file counts, provided that it is within the
// worker's life. For the same reason, a worker that had failed but was killed by our stop before it
// could exit counts as failed by itself, with the exit code that the file tells; else 1.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/death/exit_report.h"
#include "rendezvous/model/model.h"

namespace ddprun::agent {

// Everything that the node knows about a dead worker.
struct DeathFacts {
    ExitStatus status;
    int rank = 0, local_rank = 0;
    std::int64_t pid = 0;
    std::string node;
    Time started{}, reaped{};
    std::string slurm_job_id;
    // When the first signal of our stop was sent to it; empty if there was none.
    std::optional<Time> stopped;
    // Why we sent it a signal outside a stop, for example "its timer … has run out"; else empty.
    std::string sent_signal;

    std::string error;          // last line of the message in its error file
    int error_code = 1;         // with which it was about to end, as that file says
    std::string error_problem;  // what is wrong with that file: "error file … is not JSON"
    std::string error_file;     // its path, if it exists and stays after the job
    std::optional<Time> error_written;  // when it was written

    // Evidence that the kernel killed it for lack of memory; empty if there is none.
    std::string memory_kill;
    // Number of other processes of its cgroup that were killed for this reason meanwhile.
    long other_kills = 0;
    std::string core_place;         // where its core dump is, if the status says that there is one
    std::vector<std::string> tail;  // its last lines of output
};

// The result: what is reported, and when it happened.
struct Death {
    rendezvous::WorkerOutcome outcome;
    Time at{};
};

Death judge_death(DeathFacts facts);

// The last lines that fit into `bytes`. The first of them may be cut at its front.
std::vector<std::string> bounded_tail(std::vector<std::string> lines, std::size_t bytes);
// Limit for one worker's lines in a report.
inline constexpr std::size_t kTailBytes = std::size_t{16} << 10;

}  // namespace ddprun::agent
