// The outcome of the job → the code that Slurm, a shell or `timeout` sees (design 4.5), the same on
// all nodes that live.
//
//    0  succeeded, unused spares too
//    n  the first failed worker's code, or 128 + its signal: budget used up, or crash loop
//    2  the command line or the layout
//   69  could not meet or go on: rendezvous, ledger, port, too few nodes
//   70  our own fault
//   75  stopped by time limit, preemption or drain, with work left: start it again
//  128+n  stopped by a user's signal n
//
// A worker may use these numbers too, so the report's JSON names the verdict. Pure.
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
    stopped_by_signal,  // with the signal
};

// `worker_code_or_signal` matters for the two verdicts that say so. A failure is never 0 and no
// code is above 255.
int exit_code(Verdict verdict, int worker_code_or_signal = 0);

// What an error that ended ddprun before or without a job means.
Verdict verdict_of(const Error& error);

// The name that stands in the report.
const char* to_string(Verdict verdict);

}  // namespace ddprun::launcher
