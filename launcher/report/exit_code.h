// Maps the outcome of a job to the exit code that Slurm, a shell or `timeout` sees. It is the same
// on all nodes that are alive at the end.
//
//      0  succeeded; also for spare nodes that were never used
//      n  exit code of the first worker that failed, or 128 + its signal
//      2  the command line or the layout of the step is wrong
//     69  the nodes could not meet or go on: rendezvous, ledger, port, too few nodes
//     70  a fault of ddprun itself
//     75  stopped by time limit, preemption or drain, with work left: start the job again
// 128+n  stopped by a user's signal n
//
// A worker may exit with the same numbers, so the JSON report also names the verdict. 69, 70 and 75
// are EX_UNAVAILABLE, EX_SOFTWARE and EX_TEMPFAIL of sysexits.h. Pure.
#pragma once

#include "base/error.h"

namespace ddprun::launcher {

enum class Verdict {
    succeeded,
    worker_failed,  // with the worker's exit code, or minus its signal
    usage,
    unavailable,
    internal,
    stopped_with_work_left,
    stopped_by_signal,  // with the signal's number
};

// The second argument matters for worker_failed and stopped_by_signal only. The code of a failure
// is never 0, and no code is above 255.
int exit_code(Verdict verdict, int worker_code_or_signal = 0);

// The verdict for an error that ended ddprun before a job, or without one.
Verdict verdict_of(const Error& error);

// The name of the verdict in the JSON report.
const char* to_string(Verdict verdict);

}  // namespace ddprun::launcher
