// What the rendezvous machine is made with, and what status output and tests may read of it. Plain
// values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/model/model.h"

namespace ddprun::rendezvous {

enum class Phase { dormant, reading, gathering, creating, running, ending, closed };
const char* to_string(Phase phase);

struct MachineConfig {
    std::string run_id;
    NodeId self;  // this process
    int requeue = 0;
    std::string command_digest;
    std::string version;
    Limits limits;
    // For the entries' random numbers and the leader's identities.
    std::uint64_t seed = 0;
    // The ledger is shared: other nodes may lead after this one.
    bool succession = false;
    // Other nodes of the step that may each take themselves for the leader: the address where the
    // nodes meet may be one of every host (rule 11). They have no incarnation, since nobody has
    // said that they are there.
    std::vector<Peer> rivals = {};
    // An earlier allocation of the job may train though the ledger is empty (rule 26, "One node").
    bool earlier_unrecorded = false;
    bool in_slurm = false;  // Slurm may signal workers before ddprun
    // Why this node cannot lead a job at all, for example without its ledger. It leads only to tell
    // the others, so that they do not wait. Empty: it can.
    std::string refusal = {};
    bool outside = false;  // the service runs outside the job: one node has a lease too
    // Added to a Time of this node, it gives the time since 1970, for reports.
    Duration to_day{};
    std::optional<Duration> ends = {};  // when the job's time is over: since 1970
    // How long workers have for a last snapshot when the job is stopped (--shutdown-timeout);
    // nothing: not known, outside the job.
    std::optional<Duration> grace = {};
    Duration status_every{};  // a line on how the job stands after so long a silence; 0: never
};

// The state that status output and tests may read.
struct Snapshot {
    Phase phase = Phase::dormant;
    Generation newest = kNoGeneration;
    EntryNumber entry = kNoEntry;
    Generation over = kNoGeneration;
    Time held_until = kLongAgo;
    std::vector<NodeId> connected;
    int restarts = 0;
};

}  // namespace ddprun::rendezvous
