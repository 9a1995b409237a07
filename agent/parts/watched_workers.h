// The workers of a generation on this node, for who looks at them. Pure value.
#pragma once

#include <cstdint>
#include <vector>

#include "proto/ids.h"

namespace ddprun::agent {

struct WatchedWorkers {
    Generation generation = kNoGeneration;
    std::vector<std::int64_t> pids;  // by local rank; 0: it has ended, or has not been started
    bool have_started = false;       // all of them
    std::vector<std::uint64_t> calls_at = {};  // of each, its call board; 0 or no entry: none

    std::uint64_t calls_of(std::size_t worker) const {
        return worker < calls_at.size() ? calls_at[worker] : 0;
    }
};

}  // namespace ddprun::agent
