// How a job stands, as its leader sees it: what an operator gets to read. Plain values. Times are
// durations since 1970 by the clock of the leader's host, so that two looks at a job that does not
// change are equal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/model/model.h"
#include "rendezvous/model/usage.h"

namespace ddprun::rendezvous {

struct NodeStatus {
    enum class State {
        running,         // its workers run
        starting,        // a member whose workers do not run yet
        stopping,        // no member any more; workers of an older generation are being stopped
        ready,           // connected, waits for the next generation
        spare,           // connected, has no place in the generation that runs
        lost,            // its connection is gone
        gone,            // its ddprun has ended
        missing,         // its ddprun has not called
        unusable,        // it can run no worker
        drained,         // an operator has taken it out
        out_of_service,  // Slurm has taken its host out of service
    };
    std::string name;
    State state = State::missing;
    std::string why;      // for a person: "its ddprun has not called"
    int first_rank = -1;  // of a member of the newest generation; else -1
    int workers = 0;      // that it runs or would run; 0: not known
    Duration heard{};     // its last word; 0: it is connected, or has never called
    // Where it answers about its workers; empty and 0: not known, or nowhere.
    std::string address = {};
    std::uint16_t port = 0;
    std::int64_t step = -1;
    bool operator==(const NodeStatus&) const = default;
};
const char* to_string(NodeStatus::State state);

struct JobStatus {
    std::string run_id;
    std::string phase;  // of the leader: "running", "gathering", …
    NodeId leader;
    int requeue = 0;  // SLURM_RESTART_COUNT
    Generation generation = kNoGeneration;
    bool runs = false;   // that generation runs
    Duration since{};    // it runs, or the leader gathers nodes, since then; 0: not known
    std::string cause;   // why that generation was made: "start", "rank 3 … exited with 1"
    int world_size = 0;  // of that generation
    int restarts = 0;    // that are used up
    int max_restarts = 0;
    int min_nodes = 0, max_nodes = 0;
    std::int64_t step = -1, snapshot = -1;  // newest that were reported; -1: none
    std::string waiting_for;                // what the job waits for, and why; empty: for nothing
    std::string stopping;                   // the stop that is under way; empty: none
    std::string snapshot_asked;             // by whom, for what then; empty: no request is open
    std::string standstill;  // who waits for whom, as the log has it; empty: workers move
    std::string ended_by;    // what has ended that generation; empty: nothing, or it is complete
    std::optional<Duration> ends;   // when the job's time is over, where that is known
    std::optional<Duration> kills;  // when a stop kills what still runs, where that is known
    JobUsage usage = {};
    std::vector<NodeStatus> nodes;  // by name
    bool operator==(const JobStatus&) const = default;
};

}  // namespace ddprun::rendezvous
