// The rendezvous machine decides which node leads, which nodes are members with which ranks, and
// what happens next. Every node has one; on all nodes but the leader it is dormant. Pure: it takes
// an event and the time, and returns effects.
//
// The phases and rules are those of rendezvous/PROTOCOL.md, section 3. The leader has a new
// identity each time it becomes active.
//
// The standby connection for the leader's keeper (rule 12) goes to the first *connected* node of
// the order other than the leader's own, because that is the node that the others will find
// leading.
//
// Total: every event in every phase has an answer. Deterministic: sorted containers, and randomness
// only from the seed. Fencing comes first: a session without Hello, or of a replaced incarnation,
// gets its answer before any state is looked at. Thread: the loop's; owned by the service (or the
// simulator).
#pragma once

#include <memory>

#include "rendezvous/machine/machine_config.h"
#include "rendezvous/model/events.h"
#include "rendezvous/model/job_status.h"
#include "rendezvous/rules/generation_facts.h"

namespace ddprun::rendezvous {

struct MachineState;

class Machine {
  public:
    Machine(MachineConfig config, Time now);
    ~Machine();
    Machine(Machine&&) noexcept;
    Machine& operator=(Machine&&) noexcept;

    Effects step(Time now, const Event& event);
    Time next_deadline() const;  // call with a Tick no later than this; kNever: no need
    bool leads() const;  // that is, it is not dormant; cheap, since each caller causes the question
    // Both go over all nodes: only for somebody who asks. The status is for operators.
    Snapshot snapshot() const;
    JobStatus status(Time now) const;
    const GenerationFacts& facts() const;

  private:
    std::unique_ptr<MachineState> state_;
};

}  // namespace ddprun::rendezvous
