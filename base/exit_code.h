// The exit codes that ddprun uses. Slurm, a shell or `timeout` sees them, and they are the same on
// all nodes that are alive at the end.
//
//      0  succeeded; also for spare nodes that were never used
//      n  exit code of the first worker that failed, or 128 + its signal
//      2  the command line or the layout of the step is wrong
//     69  the nodes could not meet or go on: rendezvous, ledger, port, too few nodes
//     70  a fault of ddprun itself
//     75  stopped by time limit, preemption or drain, with work left: start the job again
//    124  the job hung, as timeout(1) says it
//    126  the program, or ddprun itself, cannot be run here: limits, permissions (as in a shell)
// 128+n  stopped by a user's signal n
//
// A worker may exit with the same numbers, so the JSON report also names the verdict. 69, 70 and 75
// are EX_UNAVAILABLE, EX_SOFTWARE and EX_TEMPFAIL of sysexits.h. Pure.
#pragma once

#include "base/error.h"

namespace ddprun {

inline constexpr int kUsageCode = 2;
inline constexpr int kUnavailableCode = 69;
inline constexpr int kInternalCode = 70;
inline constexpr int kWorkLeftCode = 75;
inline constexpr int kHungCode = 124;
inline constexpr int kCannotRunCode = 126;

inline constexpr int code_of_signal(int signal) { return 128 + signal; }

// Of an error that ends ddprun before a job, or without one. Every error that is neither the user's
// nor ours means that the nodes could not meet or go on.
inline int exit_code(const Error& error) {
    switch (error.code()) {
        case ErrorCode::usage:
            return kUsageCode;
        case ErrorCode::internal:
            return kInternalCode;
        default:
            return kUnavailableCode;
    }
}

}  // namespace ddprun
