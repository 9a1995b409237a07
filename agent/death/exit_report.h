// What a wait status means, and the sentence an operator reads about it. Pure.
#pragma once

#include <string>

#include "base/time.h"

namespace ddprun::agent {

// How a process ended: by itself with `code`, or by `signal` (then code is 0).
struct ExitStatus {
    int code = 0;
    int signal = 0;
    bool core = false;  // a core was dumped

    bool failed() const { return code != 0 || signal != 0; }
    // As a shell and Slurm say it: the code, or 128 + signal.
    int shell_code() const { return signal != 0 ? 128 + signal : code; }
    bool operator==(const ExitStatus&) const = default;
};

// From the status of waitpid(2) on Linux.
ExitStatus from_wait_status(int wait_status);

// "SIGKILL"; "signal 40" for one without a name.
std::string signal_name(int signal);

// Who ended, for the sentence.
struct ExitSubject {
    int rank = 0;
    int local_rank = 0;
    std::string node;
    Duration ran{};
    std::string slurm_job_id;    // empty: not under Slurm
    bool stopped_by_us = false;  // we had sent it a signal: no guess at causes
    std::string known_cause;     // said in place of a guess
};

// "rank 13 (local 5 on gpu01) was killed by signal 9 (SIGKILL) after 42 m 00 s; often out of
// memory: see dmesg or sacct -j 8812". Without full stop.
std::string exit_sentence(const ExitStatus& status, const ExitSubject& who);

}  // namespace ddprun::agent
