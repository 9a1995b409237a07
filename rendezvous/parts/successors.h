// Which nodes may lead after this leader: their order, whether they can (all nodes must read the
// same ledger), and which one has the standby connection (PROTOCOL.md, rules 10 to 12).
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
    // Some node does not read this leader's ledger, so no other node may lead.
    void ledger_is_not_shared() { shared_ = false; }
    bool ledger_is_shared() const { return shared_; }

    // Members of the newest generation by rank, then this leader, then other nodes in the order of
    // arrival. The others fill the order up to kOrderFirst names, so that a successor exists before
    // the first generation too.
    std::vector<Peer> order(std::span<const Member> members, const Peer& self,
                            const Roster& roster) const;
    // The first connected node of the order, other than `self`.
    static std::optional<Peer> next(const std::vector<Peer>& order, const NodeId& self,
                                    const Roster& roster);

    // Sets the node with the standby connection. Returns true if it changed.
    bool stands_by(const std::optional<Peer>& peer);
    const std::optional<Peer>& standby() const { return standby_; }

  private:
    std::vector<NodeId> arrivals_;  // in the order in which they came first
    bool shared_ = true;
    std::optional<Peer> standby_;
};

}  // namespace ddprun::rendezvous
