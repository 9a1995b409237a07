// What one node has found out in a check (--check), and the text in which it goes to the node that
// makes the report: JSON, over the workers' store. Pure. Errors of reading: malformed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ddprun::launcher {

struct NodeFacts {
    std::string name;
    int slots = 1;  // workers that a start would have here

    // Other nodes, by rank, that this one could not reach, and why.
    struct Unreached {
        int rank = 0;
        std::string why;
        bool operator==(const Unreached&) const = default;
    };
    std::vector<Unreached> unreached;
    int reached = 0;

    // How far the first node's clock is ahead of this one's, and how exactly that is known;
    // seconds. Nothing: not measured.
    struct Clock {
        double ahead = 0, within = 0;
        bool operator==(const Clock&) const = default;
    };
    std::optional<Clock> clock;

    std::uint64_t ledger_mark = 0;  // that stands in the ledger, as this node sees it
    std::string ledger_fault;       // why there is none

    std::optional<int> gpus_given;        // by Slurm
    int gpus_shown = 0;                   // by NVIDIA's driver
    std::vector<std::string> gpu_faults;  // devices that cannot be opened: "/dev/nvidia3: …"

    std::string program_fault;  // why the user's program cannot be started here
    std::string temporary;      // the folder for temporary files
    std::optional<std::int64_t> temporary_free, shared_memory_free;  // bytes
    std::optional<std::int64_t> locked_memory;  // bytes that RDMA may lock; empty: no limit
    bool rdma = false;                          // there is a device for it
    std::optional<std::int64_t> open_files;     // the hard limit; empty: none

    bool operator==(const NodeFacts&) const = default;
};

std::string to_json(const NodeFacts& facts);
Result<NodeFacts> facts_from_json(std::string_view text);

// The nodes that one of so many calls, in this order: each begins with another, so that none is
// called by all at once.
std::vector<int> peers_of(int rank, int nodes);

}  // namespace ddprun::launcher
