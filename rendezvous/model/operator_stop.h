// How a job ends that an operator has stopped: the sentence of such an end, and how who reads the
// ledger knows it again. Pure.
#pragma once

#include <string>
#include <string_view>

#include "rendezvous/model/model.h"

namespace ddprun::rendezvous {

inline constexpr std::string_view kStoppedBy = "stopped by ", kWithDdpctl = " with ddpctl";

// `by`: "alice@login1"; `after`: ", after the snapshot of step 40", or nothing.
inline std::string operators_stop(const std::string& by, const std::string& after = {}) {
    return std::string(kStoppedBy) + by + std::string(kWithDdpctl) + after;
}

// Such a job does not go back into Slurm's queue. The other stops by a signal have the signal's
// name and the node in their sentence.
inline bool is_operators_stop(const Ending& ending) {
    return ending.verdict == Verdict::user_signal && !ending.requeue &&
           ending.sentence.starts_with(kStoppedBy) &&
           ending.sentence.find(kWithDdpctl) != std::string::npos;
}

}  // namespace ddprun::rendezvous
