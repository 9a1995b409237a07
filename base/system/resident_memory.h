// How much memory this process has in use. Thread: one at a time.
#pragma once

#include <cstdint>

#include "base/system/small_file.h"

namespace ddprun {

// Looks again and again at the cost of one system call.
class ResidentMemory {
  public:
    // Resident now; 0: /proc does not tell.
    std::int64_t bytes();

  private:
    KeptFile statm_{"/proc/self/statm"};
};

}  // namespace ddprun
