// Which hosts Slurm has taken out of service, and when to ask Slurm again. Slurm's answer proves
// nothing about workers on these hosts. It only decides about waiting: the leader does not wait for
// a node that will not come back. Which evidence allows the next generation is up to the lease
// (PROTOCOL.md, rules 7 and 8).
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
    // Gathering begins. `later`: at the start of a job nodes may only be slow, so the first
    // question comes after a minute. `never`: there is no Slurm, or the expected nodes are not
    // known.
    enum class Ask { never, later, now };
    void gathering(Time now, Ask when);

    Time asks_at() const { return ask_at_; }
    // It is time to ask. Returns the hosts of these nodes, none of which is connected.
    std::vector<std::string> ask(Time now, const std::vector<std::string>& nodes);
    // Slurm's answer, host to state. Returns true if it differs from the previous answer.
    bool said(const std::map<std::string, std::string>& states);

    bool contains(const std::string& node) const;
    // Those of `nodes` that are out of service: "n3 (drained)".
    std::vector<std::string> of(const std::vector<std::string>& nodes) const;

  private:
    std::map<std::string, std::string> states_;  // by host, as Slurm said last
    Time ask_at_ = kNever;
};

}  // namespace ddprun::rendezvous
