// The agent machine: the life of one node. Pure: it takes an event and the time, and returns
// effects.
//
//     joining ──Assigned──▶ running ──failure, over, Stop, lease──▶ stopping ──Swept──▶ joining …
//        │                     └── all exited 0 ──▶ waiting (still a member) ──over──▶ joining …
//        └──Finished, Refused, join timeout──▶ finished (from everywhere)
//
// It contains the node's half of the lease (rendezvous/PROTOCOL.md, rules 1, 2, 4, 5 and 6): floor,
// seen, Beats, echoes and the deadline are in rendezvous/rules/lease_member.h. It also contains the
// node's half of succession (rule 10): which node to call when the leader is lost, and when to lead
// itself; rendezvous/rules/succession.h has the order. Total and deterministic. Thread: the loop's;
// owned by the runner (or the simulator).
#pragma once

#include <memory>
#include <vector>

#include "agent/machine/events.h"
#include "rendezvous/rules/generation_facts.h"

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

class Machine {
  public:
    Machine(MachineConfig config, Time now);
    ~Machine();
    Machine(Machine&&) noexcept;
    Machine& operator=(Machine&&) noexcept;

    Effects step(Time now, const Event& event);
    Time next_deadline() const;  // call with a Tick no later than this; kNever: no need
    Snapshot snapshot() const;
    const rendezvous::GenerationFacts& facts() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace ddprun::agent
