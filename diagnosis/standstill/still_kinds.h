// Puts the workers of a node that stand still in the same way together, so that a Beat can tell
// them in a few bytes. Pure.
#pragma once

#include <vector>

#include "diagnosis/standstill/still_worker.h"

namespace ddprun::agent {

// A worker is told from here on.
inline constexpr auto kStillFor = std::chrono::seconds{5};

// `workers` by local rank. Empty if any of them moves, or if there are more than kStillWorkers or
// more kinds than kStillKinds: then nothing can be judged.
std::vector<rendezvous::Still> still_kinds(Time now, const std::vector<StillWorker>& workers);

// Whether none of them has moved for kStillFor.
bool all_stand_still(Time now, const std::vector<StillWorker>& workers);

// Whether all workers that live have been in collectives for a moment, and do nothing else: one
// that writes a snapshot meanwhile does not count.
bool all_in_collectives(Time now, const std::vector<StillWorker>& workers);

}  // namespace ddprun::agent
