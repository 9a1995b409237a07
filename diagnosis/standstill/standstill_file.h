// Keeps what workers do while they stand still, before anybody stops them: a file in the folder of
// their generation, with the stacks of all, what they have open, and their last lines. What is seen
// later in the same generation is added at its end.
//
// Thread: one of its own. The processes may let nobody look at them, and the file system may hang.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "rendezvous/model/model.h"

namespace ddprun::agent {

// The file's name in the folder of the generation.
inline constexpr const char* kStandstillFile = "standstill.txt";

// `workers`: their ranks, processes and last lines.
Result<> keep_standstill(const std::string& path,
                         const std::vector<rendezvous::WorkerOutcome>& workers);
// Adds what tools say of some of them.
Result<> keep_lines(const std::string& path, const std::vector<std::string>& lines);

}  // namespace ddprun::agent
