// What the ddprun processes of a job use, for those who watch it. Plain values.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ddprun::rendezvous {

// Of one node, as its Beats tell it. The sums grow for as long as its ddprun lives.
struct Usage {
    std::int64_t memory = 0;            // of ddprun itself, resident, in bytes
    std::int64_t log_bytes = 0;         // that its workers have printed
    std::int64_t store_operations = 0;  // that workers have asked of the stores on this node
    std::int64_t store_waiters = 0;     // connections that wait there for a key, now
    bool operator==(const Usage&) const = default;
};

// Of the nodes that are connected; sums also of those that have left while this leader leads.
struct JobUsage {
    std::int64_t leader_memory = 0, largest_memory = 0;  // the leader's, and that of any node
    std::int64_t log_bytes = 0, store_operations = 0, store_waiters = 0;

    void add(const Usage& node) {
        largest_memory = std::max(largest_memory, node.memory);
        log_bytes += node.log_bytes;
        store_operations += node.store_operations;
        store_waiters += node.store_waiters;
    }
    // Two looks at a job that does not change are equal, whatever it uses meanwhile.
    bool operator==(const JobUsage&) const { return true; }
};

}  // namespace ddprun::rendezvous
