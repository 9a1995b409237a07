// Signals, time limits and graces of a stop (stop_policy.h).
#include "agent/parts/stop_policy.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "agent/death/exit_report.h"

namespace ddprun::agent {
namespace {

using rendezvous::kTerminate;
using rendezvous::StopAsked;
using rendezvous::StopCause;

}  // namespace

Duration stop_before(const StopOptions& options, Duration snapshot_took) {
    // The user knows best. Otherwise half of the job's time at most, so that a short job gets to
    // train at all.
    if (options.before) return *options.before;
    const Duration wanted = std::max(kLeastStopBefore, 2 * snapshot_took + kKeptBack);
    return options.first_left ? std::min(wanted, *options.first_left / 2) : wanted;
}

Time stop_due_at(const StopOptions& options, Duration snapshot_took) {
    if (!options.job_end) return kNever;
    return *options.job_end - stop_before(options, snapshot_took);
}

StopAsked stop_by_time_limit(const StopOptions& options, Time now) {
    StopAsked asked;
    asked.cause = StopCause::time_limit;
    // A node may notice the limit when it has already passed.
    const Duration left = std::max(*options.job_end - now, Duration{});
    asked.reason = "the time limit is " + to_text(left) + " away, noticed";
    // No user asked for this stop, so only --requeue=never forbids the requeue.
    asked.requeue = options.requeue != RequeueMode::never;
    return asked;
}

StopAsked stop_by_signal(int signal, const StopOptions& options, Time now) {
    StopAsked asked{.signal = signal, .reason = signal_name(signal)};
    if (std::ranges::find(options.requeue_signals, signal) != options.requeue_signals.end()) {
        asked.cause = StopCause::named_signal;
        asked.reason += " (--requeue-signal)";
        asked.requeue = options.requeue != RequeueMode::never;
    } else if (signal == kTerminate) {
        // A plain SIGTERM may be scancel's, so it leads to a requeue only if the user says so.
        // After the time limit it is certainly Slurm's.
        asked.requeue = options.requeue == RequeueMode::always;
        if (options.leaves && !asked.requeue) asked.cause = StopCause::node_leaves;
        if (options.job_end && now >= *options.job_end) {
            asked.cause = StopCause::time_limit;
            asked.reason += " (time limit)";
        }
    }
    return asked;
}

// A signal of --requeue-signal is addressed to ddprun, and a program may use it for something else.
// So only a plain signal reaches the workers as it came.
int signal_for_workers(StopCause cause, int signal, const StopOptions& options) {
    if (options.worker_signal) return *options.worker_signal;
    return cause == StopCause::signal && signal != 0 ? signal : kTerminate;
}

Duration grace_of(StopCause cause, std::optional<Duration> left, Duration final,
                  const StopOptions& options, Duration snapshot_took) {
    // Only these two come some time before Slurm itself kills the job.
    if (cause != StopCause::time_limit && cause != StopCause::named_signal) return final;
    if (left && *left <= Duration{}) return final;  // Slurm kills when its own grace is over
    // With little time left, half of it: the fixed reserve could leave the workers none.
    const Duration time = left.value_or(stop_before(options, snapshot_took));
    return std::max(time - kKeptBack, time / 2);
}

// Workers read these words in the stop file, so they never change (slurm/README.md).
const char* to_string(StopCause cause) {
    switch (cause) {
        case StopCause::signal:
            return "signal";
        case StopCause::time_limit:
            return "time_limit";
        case StopCause::named_signal:
            return "named_signal";
        case StopCause::larger_world:
            return "larger_world";
        case StopCause::node_leaves:
            return "node_leaves";
    }
    return "signal";
}

std::string to_json(const StopHint& hint, Duration now) {
    // A program may read the file much later than it was written, so the end is there as a time of
    // day, too.
    const nlohmann::json json{{"format", "ddprun stop"},
                              {"version", 1},
                              {"reason", to_string(hint.cause)},
                              {"sentence", hint.sentence},
                              {"signal", signal_name(hint.signal)},
                              {"seconds_left", in_seconds(hint.grace)},
                              {"killed_at", in_seconds(now + hint.grace)},
                              {"requeue", hint.requeue},
                              {"generation", hint.generation.value}};
    // `replace`: the sentence may name things that are not UTF-8, and dump() would throw.
    return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace ddprun::agent
