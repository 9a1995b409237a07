// Notices a training that begins at its first step again after a restart: the program has resumed
// nothing, though the restart was meant to save what it had done. Pure; owned by the agent machine
// of the node that has rank 0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "proto/ids.h"

namespace ddprun::agent {

class BegunAgain {
  public:
    // Rank 0 has reported these steps in this generation, `first` before `newest`, and this is the
    // newest snapshot that it has (-1: none is told). Returns a warning at the first report of a
    // generation that has begun again.
    std::optional<std::string> reported(Generation generation, std::int64_t first,
                                        std::int64_t newest, std::int64_t snapshot);

  private:
    Generation generation_ = kNoGeneration;
    std::int64_t begin_ = -1;                  // the first step that was ever reported
    std::int64_t reached_ = -1, newest_ = -1;  // the newest of the generations before, and of this
    std::int64_t snapshot_ = -1;               // the newest one that was ever reported
};

}  // namespace ddprun::agent
