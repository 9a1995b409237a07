// One worker's death: from all that its node knows of it to what the report says. Pure.
//
// When it was: as a rule the moment at which the keeper reaped it. But a program that has failed
// may take long to end (a destructor closes its connections, the others see that and fail before it
// has exited): where the worker left an account of an error, the moment at which it wrote that
// counts, if it lies in the worker's life. For the same reason such a worker that was ended by our
// stop before it could exit has failed by itself, as with code 1.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/death/exit_report.h"
#include "rendezvous/model/model.h"

namespace ddprun::agent {

struct DeathFacts {
    ExitStatus status;
    int rank = 0, local_rank = 0;
    std::int64_t pid = 0;
    std::string node;
    Time started{}, reaped{};
    std::string slurm_job_id;
    std::optional<Time> stopped;  // when the first signal of our stop was sent to it
    std::string sent_signal;  // why we sent it the one it died of otherwise: "timer … expired"

    std::string error;          // of its error file: the message's last line
    std::string error_problem;  // what is wrong with that file: "error file … is not JSON"
    std::string error_file;     // its path, if it is there and stays
    std::optional<Time> error_written;

    std::string memory_kill;  // who says that the kernel killed it for lack of memory; else empty
    long other_kills = 0;     // processes of its control group that were killed so meanwhile
    std::string core_place;   // of its core dump, where the status says that there is one
    std::vector<std::string> tail;
};

struct Death {
    rendezvous::WorkerOutcome outcome;
    Time at{};
};

Death judge_death(DeathFacts facts);

// The last lines, as far as they go into so many bytes; the first of them cut at its front.
std::vector<std::string> bounded_tail(std::vector<std::string> lines, std::size_t bytes);
inline constexpr std::size_t kTailBytes = std::size_t{16} << 10;

}  // namespace ddprun::agent
