// Reduces a failing job to the faults that it needs to fail. It takes out one fault after the
// other, and halves how long the others last, as long as the job still fails. A trace with two
// faults can be read; one with ten cannot.
//
// Deterministic. Runs the whole job once for each try.
#pragma once

#include "tests/sim/world.h"

namespace ddprun::sim {

struct Shrunk {
    WorldConfig config;     // with the faults that are left
    std::string violation;  // what they lead to
    int runs = 0;           // how many jobs were run
};

// Precondition: the job of this config has a violation.
Shrunk shrink(const WorldConfig& config);

}  // namespace ddprun::sim
