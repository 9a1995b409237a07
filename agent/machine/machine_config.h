// What the agent machine is made with, and what tests may read of it. Plain values.
#pragma once

#include <string>
#include <vector>

#include "agent/parts/stop_policy.h"
#include "rendezvous/model/model.h"

namespace ddprun::agent {

enum class Phase { joining, running, waiting, stopping, finished };
const char* to_string(Phase phase);

struct MachineConfig {
    std::string run_id{};
    rendezvous::NodeId node{};
    rendezvous::Offer offer{};
    int requeue = 0;
    std::string version{};
    rendezvous::Limits limits{};  // for a rendezvous outside the job
    bool leads = false;           // this node's service leads at the start
    // Later too, if the leader is lost and the ledger proves to be shared.
    bool may_lead = false;
    std::string unusable{};  // why no worker can run here; empty: workers can run
    Duration join_timeout = std::chrono::seconds{600};
    Grace grace{};
    StopOptions stop{};
    std::vector<int> passed_on{};  // signals that only the workers get: the job goes on
    bool at_terminal =
        false;  // a second SIGINT means it: kill (Slurm repeats signals without meaning it)
};

struct Snapshot {
    Phase phase = Phase::joining;
    Generation running = kNoGeneration;
    Generation floor = kNoGeneration;
    EntryNumber seen = kNoEntry;
    Time deadline = kNever;
    int workers_alive = 0;
};

}  // namespace ddprun::agent
