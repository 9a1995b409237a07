// What one node finds out in a check (`ddprun --check`), and its JSON form. The nodes put the JSON
// into the workers' store, where the node that makes the report reads it. Pure. Possible error when
// reading: malformed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/parts/warm_findings.h"
#include "base/error.h"

namespace ddprun::launcher {

// The findings of one node. An empty fault text means that nothing is wrong.
struct NodeFacts {
    std::string name;
    int slots = 1;  // workers that a real start would run here

    // The nodes that this one could not reach, by rank, with the reason.
    struct Unreached {
        int rank = 0;
        std::string why;
        bool operator==(const Unreached&) const = default;
    };
    std::vector<Unreached> unreached;
    int reached = 0;  // number of nodes that it did reach

    // How far the clock of the node with rank 0 is ahead of this node's, and the uncertainty of
    // that number; both in seconds. Empty: not measured.
    struct Clock {
        double ahead = 0, within = 0;
        bool operator==(const Clock&) const = default;
    };
    std::optional<Clock> clock;

    std::uint64_t ledger_mark = 0;  // the mark found in the ledger (ledger_claim.h); 0: none
    std::string ledger_fault;       // why this node cannot see the ledger

    std::optional<int> gpus_given;        // by Slurm: SLURM_GPUS_ON_NODE
    int gpus_shown = 0;                   // by NVIDIA's driver
    std::vector<std::string> gpu_faults;  // devices that cannot be opened, with the reason

    std::string program_fault;  // why the user's program cannot be started here
    // Whether the workers could be warm (warm/warm_check.h). Only rank 0 tries.
    std::optional<agent::warm::WarmCheck> warm;
    // How long Slurm holds a requeued job, in seconds; empty: not in a job, or not known. Only rank
    // 0 asks.
    std::optional<std::int64_t> requeue_delay;
    std::string temporary;  // the folder for temporary files
    std::optional<std::int64_t> temporary_free, shared_memory_free;  // bytes
    // Bytes, soft limit of RLIMIT_MEMLOCK; empty: no limit.
    std::optional<std::int64_t> locked_memory;
    bool rdma = false;                       // this host has an RDMA device
    std::optional<std::int64_t> open_files;  // hard limit of RLIMIT_NOFILE; empty: no limit

    bool operator==(const NodeFacts&) const = default;
};

std::string to_json(const NodeFacts& facts);
Result<NodeFacts> facts_from_json(std::string_view text);

// The ranks that this node calls, in this order: (rank + 1), (rank + 2), … modulo `nodes`. Every
// node starts with another peer, so that no node is called by all others at the same moment.
std::vector<int> peers_of(int rank, int nodes);

}  // namespace ddprun::launcher
