// The rendezvous machine: decides who leads, who is in, with which rank, and what now. Every node
// has one, dormant but on the leader. Pure: an event and the time in, effects out.
//
//                             all here, evidence that the last is over    entry is ours
//     dormant ─Lead─▶ reading ─▶ gathering ─────────▶ creating ─────────▶ running
//        ▲                        │   ▲                  │ lost, failed     │ failure, lease passed,
//        └── yields to another ───┘   └──────────────────┴──────────────────┘ floor reached, gone
//
//     gathering, running ─▶ ending (the end is being recorded) ─▶ closed
//
// The rules are those of design 4.3. Each time it becomes active a leader has a new identity. What
// the newest generation is to a leader that did not make it is found out by rule 9: all its members
// come running it: taken over; one comes without, one is proven gone, or none comes: over.
//
// One thing differs from rule 12 as it is written: the leader's keeper speaks to the first
// *connected* node of the order that is not its own, for that is the one the others will find
// leading.
//
// Total: each event in each phase has an answer. Deterministic: sorted containers, randomness only
// from the seed. Fencing first: a session without Hello, or of an incarnation that has been
// replaced, is answered before any state is looked at. Thread: the loop's; owned by the service (or
// the simulator).
#pragma once

#include <memory>
#include <optional>

#include "rendezvous/model/events.h"
#include "rendezvous/model/model.h"
#include "rendezvous/rules/generation_facts.h"

namespace ddprun::rendezvous {

enum class Phase { dormant, reading, gathering, creating, running, ending, closed };
const char* to_string(Phase phase);

struct MachineConfig {
    std::string run_id;
    NodeId self;  // of this process
    int requeue = 0;
    std::string command_digest;
    std::string version;
    Limits limits;
    std::uint64_t seed = 0;   // of the entries' random numbers and the leader's identities
    bool succession = false;  // the ledger is shared: others may lead after this one
    bool in_slurm = false;    // whose signals may reach workers before ddprun
    bool outside = false;     // the rendezvous runs in none of the nodes: one node has a lease too
    // From a Time of this node to the time of day, since 1970: what a report's times are in.
    Duration to_day{};
};

// What status and tests may see.
struct Snapshot {
    Phase phase = Phase::dormant;
    Generation newest = kNoGeneration;
    EntryNumber entry = kNoEntry;
    Generation over = kNoGeneration;
    Time held_until = kLongAgo;
    std::vector<NodeId> connected;
    int restarts = 0;
    std::string waiting_for;
};

class Machine {
  public:
    Machine(MachineConfig config, Time now);
    ~Machine();
    Machine(Machine&&) noexcept;
    Machine& operator=(Machine&&) noexcept;

    Effects step(Time now, const Event& event);
    Time next_deadline() const;  // call with a Tick no later than this; kNever: no need
    Snapshot snapshot() const;
    const GenerationFacts& facts() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace ddprun::rendezvous
