// How much memory this process has in use. Thread: any.
#pragma once

#include <cstdint>

namespace ddprun {

// Bytes that are resident now; 0: /proc does not tell.
std::int64_t resident_memory();

}  // namespace ddprun
