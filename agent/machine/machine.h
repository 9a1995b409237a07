// The agent machine: the life of one node. Pure: an event and the time in, effects out.
//
//     joining ──Assigned──▶ running ──failure, over, Stop, lease──▶ stopping ──Swept──▶ joining …
//        │                     └───── all workers exited 0 ──▶ waiting (still a member) ──over──▶ joining …
//        └──Finished, Refused, join timeout──▶ finished (from everywhere)
//
// It is also the node's half of the lease (design 4.3, rules 1, 2, 4, 5, 6): floor, seen, beats,
// echoes, the deadline; that half lives in lease_member.h. And it is the node's half of succession
// (rule 10): whom to call when the leader is lost, and when to lead itself; rendezvous/rules/succession.h
// knows the order. Total, deterministic. Thread: the loop's; owned by the runner (or the simulator).
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
    bool may_lead = false;   // later too, if the leader is lost and the ledger proves to be shared
    std::string unusable{};  // why no worker can run here: the others are told; empty: they can
    Duration join_timeout = std::chrono::seconds{600};
    Duration grace_final = std::chrono::seconds{30};
    Duration grace_restart = std::chrono::seconds{5};
    StopOptions stop{};
    std::vector<int> passed_on{};  // signals that are the workers' business: the job goes on
    bool at_terminal =
        false;  // a second SIGINT means it: kill (Slurm repeats signals without meaning it)
    // How long what was sent SIGKILL may live on, before this node counts as unusable.
    Duration kill_patience = std::chrono::seconds{60};
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
