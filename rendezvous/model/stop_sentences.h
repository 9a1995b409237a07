// What a stop is called: its reason while it goes on, the sentence of the end, and how a reader of
// the ledger recognises the end that an operator asked for. Pure.
#pragma once

#include <string>
#include <string_view>

#include "rendezvous/model/model.h"

namespace ddprun::rendezvous {

// Whether the job ends with this stop. Otherwise its generation makes room for the next one, and
// the reason is a whole sentence.
inline bool ends_job(StopCause cause) {
    return cause != StopCause::larger_world && cause != StopCause::node_leaves;
}

// A Stop carries the bare reason; these are what the log says of it, before and after.
inline std::string stopping(StopCause cause, const std::string& reason) {
    return (ends_job(cause) ? "stopping: " : "") + reason;
}
inline std::string stopped(const std::string& reason) { return "stopped: " + reason; }

inline constexpr std::string_view kDdpctlStop = "ddpctl stop by ";

// `by`: "alice@login1"; `after`: ", after the snapshot of step 40", or nothing.
inline std::string operators_stop(const std::string& by, const std::string& after = {}) {
    return std::string(kDdpctlStop) + by + after;
}

// Such a job does not go back into Slurm's queue. The second form is that of ledgers before
// December 2026. The other stops by a signal have the signal's name and the node in their sentence.
inline bool is_operators_stop(const Ending& ending) {
    const std::string& said = ending.sentence;
    return ending.verdict == Verdict::user_signal && !ending.requeue &&
           (said.starts_with(stopped(std::string(kDdpctlStop))) ||
            (said.starts_with("stopped by ") && said.find(" with ddpctl") != std::string::npos));
}

}  // namespace ddprun::rendezvous
