// How long a wait may take that shares its deadline with other waits.
#pragma once

#include <algorithm>
#include <chrono>

namespace ddprun::trainer {

// At least 1 ms: a key of the store that is already there can still be read after the deadline.
inline std::chrono::milliseconds left_until(std::chrono::steady_clock::time_point deadline) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    return std::max(left, std::chrono::milliseconds(1));
}

}  // namespace ddprun::trainer
