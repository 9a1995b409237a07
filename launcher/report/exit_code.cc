// The table from verdicts to exit codes.
#include "launcher/report/exit_code.h"

namespace ddprun::launcher {
namespace {

// 128 + n, as shells report a signal. A number that is no signal still counts as a failure: 1.
int of_signal(int signal) { return signal >= 1 && signal <= 127 ? 128 + signal : 1; }

}  // namespace

int exit_code(Verdict verdict, int worker_code_or_signal) {
    switch (verdict) {
        case Verdict::succeeded:
            return 0;
        case Verdict::worker_failed:
            // Negative: minus the signal's number, as in torchrun's reports.
            if (worker_code_or_signal < 0)
                return worker_code_or_signal >= -127 ? 128 - worker_code_or_signal : 1;
            // The kernel keeps 8 bits of an exit code. 256 would become 0, a success; so everything
            // else becomes 1.
            return worker_code_or_signal >= 1 && worker_code_or_signal <= 255
                       ? worker_code_or_signal
                       : 1;
        case Verdict::usage:
            return 2;
        case Verdict::unavailable:
            return 69;
        case Verdict::internal:
            return 70;
        case Verdict::stopped_with_work_left:
            return 75;
        case Verdict::stopped_by_signal:
            return of_signal(worker_code_or_signal);
    }
    return 70;
}

Verdict verdict_of(const Error& error) {
    switch (error.code()) {
        case ErrorCode::usage:
            return Verdict::usage;
        case ErrorCode::internal:
            return Verdict::internal;
        // Every other error means that the nodes could not meet or go on.
        default:
            return Verdict::unavailable;
    }
}

const char* to_string(Verdict verdict) {
    switch (verdict) {
        case Verdict::succeeded:
            return "succeeded";
        case Verdict::worker_failed:
            return "worker_failed";
        case Verdict::usage:
            return "usage";
        case Verdict::unavailable:
            return "unavailable";
        case Verdict::internal:
            return "internal";
        case Verdict::stopped_with_work_left:
            return "stopped_with_work_left";
        case Verdict::stopped_by_signal:
            return "stopped_by_signal";
    }
    return "internal";
}

}  // namespace ddprun::launcher
