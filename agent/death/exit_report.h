// What a wait status means, and the sentence about it for an operator. Pure.
#pragma once

#include <string>

#include "base/time.h"

namespace ddprun::agent {

// How a process ended: by itself with `code`, or by `signal` (then `code` is 0).
struct ExitStatus {
    int code = 0;
    int signal = 0;
    bool core = false;  // a core dump was written

    bool failed() const { return code != 0 || signal != 0; }
    // The exit code as a shell and Slurm report it: `code`, or 128 + `signal`.
    int shell_code() const { return signal != 0 ? 128 + signal : code; }
    bool operator==(const ExitStatus&) const = default;
};

// From the status of waitpid(2) on Linux.
ExitStatus from_wait_status(int wait_status);

// For example "SIGKILL"; "signal 40" for a signal without a name.
std::string signal_name(int signal);

// Which process ended, and what is known about it.
struct ExitSubject {
    int rank = 0;
    int local_rank = 0;
    std::string node;
    Duration ran{};              // from its start to its end
    std::string slurm_job_id;    // empty when not under Slurm
    bool stopped_by_us = false;  // we had sent it a signal: causes are not guessed
    std::string known_cause;     // said instead of a guess; may be empty
};

// For example "rank 13 (local 5 on gpu01) was killed by signal 9 (SIGKILL) after 42 m 00 s; often
// out of memory: see dmesg or sacct -j 8812". Without a full stop.
std::string exit_sentence(const ExitStatus& status, const ExitSubject& who);

}  // namespace ddprun::agent
