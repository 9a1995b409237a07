// The agent machine: the life of one node. Pure: it takes an event and the time, and returns
// effects.
//
// The phases are those of rendezvous/PROTOCOL.md, section 3. It contains the node's half of the
// lease (rules 1, 2, 4, 5 and 6): floor, seen, Beats, echoes and the deadline are in
// rendezvous/rules/lease_member.h. It also contains the node's half of succession (rule 10): which
// node to call when the leader is lost, and when to lead itself; rendezvous/rules/succession.h has
// the order. Total and deterministic. Thread: the loop's; owned by the runner (or the simulator).
#pragma once

#include <memory>

#include "agent/machine/events.h"
#include "agent/machine/machine_config.h"
#include "rendezvous/rules/generation_facts.h"

namespace ddprun::agent {

struct MachineState;

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
    std::unique_ptr<MachineState> state_;
};

}  // namespace ddprun::agent
