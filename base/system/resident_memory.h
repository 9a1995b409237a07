// How much memory this process has in use. Thread: any.
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.h"

namespace ddprun {

// Bytes that are resident now; 0: /proc does not tell.
std::int64_t resident_memory();

// The same for who wants to know it again and again: it is looked at once in five seconds. Thread:
// one.
class MemoryGauge {
  public:
    std::int64_t read(Time now);

  private:
    std::optional<Time> looked_at_;
    std::int64_t bytes_ = 0;
};

}  // namespace ddprun
