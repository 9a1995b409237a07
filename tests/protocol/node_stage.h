// The node of a script: the agent machine of node a, the first of two nodes, with one worker. Each
// line of a script is one event, and the effects of the machine are the lines below it. The machine
// is pure, so a script gives the time of each event. README.md lists the events.
#pragma once

#include "tests/agent/machine/machine_script.h"
#include "tests/protocol/words.h"

namespace ddprun::protocol_test {

class NodeStage {
  public:
    explicit NodeStage(const Words& words) : machine_(config(words), test::at(0)) {}
    Lines play(double now, const Words& words);

  private:
    static agent::MachineConfig config(const Words& words);
    Lines step(double now, const agent::Event& event);
    Lines assigned(double now, const Words& words);
    Lines ack(double now, const Words& words);
    Lines show() const;
    Lines told(double now, const rendezvous::ToNode& message) {
        return step(now, agent::MessageCame{message});
    }

    agent::Machine machine_;
    std::int64_t acks_ = 0;
};

}  // namespace ddprun::protocol_test
