// Cuts the faults of a failing job to its core: takes out one after the other, and halves how long
// they last, as long as it still fails. Deterministic; runs the job once for each try.
#pragma once

#include "tests/sim/world.h"

namespace ddprun::sim {

struct Shrunk {
    WorldConfig config;     // with the faults that are left
    std::string violation;  // what they lead to
    int runs = 0;
};

// Precondition: the job of this config has a violation.
Shrunk shrink(const WorldConfig& config);

}  // namespace ddprun::sim
