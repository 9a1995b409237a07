// Who leads after this leader: the order in which its nodes would, whether they can (all must read
// the same ledger), and which one has a standby link already (rules 10 to 12).
//
// Pure; owned by the rendezvous machine.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "rendezvous/rules/roster.h"

namespace ddprun::rendezvous {

class Successors {
  public:
    // A node has joined for the first time.
    void arrived(const NodeId& node) { arrivals_.push_back(node); }
    std::size_t arrived_count() const { return arrivals_.size(); }
    // Some node does not read this leader's ledger: nobody can follow.
    void ledger_is_not_shared() { shared_ = false; }
    bool ledger_is_shared() const { return shared_; }

    // Members of the newest generation by rank; then this leader and the others as they came, at
    // most so many that there is somebody before the first generation.
    std::vector<Peer> order(std::span<const Member> members, const Peer& self,
                            const Roster& roster) const;
    // The first of them that is connected.
    static std::optional<Peer> next(const std::vector<Peer>& order, const NodeId& self,
                                    const Roster& roster);

    // The node with the standby link. True: it is another one now.
    bool stands_by(const std::optional<Peer>& peer);
    const std::optional<Peer>& standby() const { return standby_; }

  private:
    std::vector<NodeId> arrivals_;  // in the order in which they came first
    bool shared_ = true;
    std::optional<Peer> standby_;
};

}  // namespace ddprun::rendezvous
