// Which hosts Slurm has taken out of service, and when to ask it again. What Slurm says proves
// nothing of the workers there, so it decides about waiting alone: the leader does not wait for a
// node that will not come back. Who may follow a generation stays the lease's matter.
//
// Pure; owned by the rendezvous machine.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/time.h"

namespace ddprun::rendezvous {

class OutOfServiceNodes {
  public:
    // Gathering begins. At the start of a job nodes that are only slow are waited for, and asked
    // about a minute later. Never: there is no Slurm, or nobody knows who may come at all.
    enum class Ask { never, later, now };
    void gathering(Time now, Ask when);

    Time asks_at() const { return ask_at_; }
    // It is time to ask: the hosts of these nodes, none of which is connected.
    std::vector<std::string> ask(Time now, const std::vector<std::string>& nodes);
    // Slurm's answer: host to state. True: it is not what it said before.
    bool said(const std::map<std::string, std::string>& states);

    bool contains(const std::string& node) const;
    // Of these nodes those that are out of service: "n3 (drained)".
    std::vector<std::string> of(const std::vector<std::string>& nodes) const;

  private:
    std::map<std::string, std::string> states_;  // by host, as Slurm said last
    Time ask_at_ = kNever;
};

}  // namespace ddprun::rendezvous
