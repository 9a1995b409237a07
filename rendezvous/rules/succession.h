// Which node leads when the leader is silent (PROTOCOL.md, rules 9 to 11): the calls of a node, and
// the short answers of leaders and dormant services. Pure; the agent machine owns the Caller.
//
// All nodes know one order, which the leader sends: members of the newest generation by rank, then
// other nodes in the order of arrival. With many members the order names only some of them, because
// every node gets it; a node that is not named comes after all that are. A node that lost its
// leader calls that leader once more, then the order from its start, 0.15 lease each. It leads
// itself when its own turn comes:
//
//     lost ──▶ last leader ──▶ first of the order ──▶ … ──▶ itself: lead ──▶ … ──▶ from the start
//                 │ refused: the next at once    "elsewhere": there     "wait": again in 0.02 lease
//
// From the second round on, each round ends with the endpoint, because a replacement of a ddprun
// may have come there. A node leads only if it shares the ledger: it has found the ledger that its
// leader named, by its mark.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "rendezvous/model/messages.h"

namespace ddprun::rendezvous {

class Caller {
  public:
    // "elsewhere" answers that are followed in one turn.
    static constexpr int kMostPointers = 4;

    explicit Caller(NodeId self) : self_(std::move(self)) {}

    // What the leader has sent.
    void learn(std::vector<Peer> order) { order_ = std::move(order); }
    void led_by(const Peer& leader) { leader_ = leader; }
    const std::optional<Peer>& leader() const { return leader_; }
    const std::vector<Peer>& order() const { return order_; }
    void may_not_lead_before(Time when) { not_before_ = when; }

    struct Call {
        Peer peer;
        // It is this node's own turn: become the leader, then call oneself.
        bool lead = false;
        Time from{};   // not before this time
        Time until{};  // the end of its turn
    };
    // The leader is lost. Returns the first call.
    Call begin(Time now, Duration lease, bool may_lead);
    // The call failed, or its turn passed without an answer. Returns the next call.
    Call next(Time now);
    // The called service does not lead. Returns the call that follows from its answer.
    Call elsewhere(Time now, const Elsewhere& answer);

  private:
    Call turn(Time now, const Peer& peer);
    bool is_self(const Peer& peer) const { return peer.node == self_; }

    NodeId self_;
    std::optional<Peer> leader_;
    std::vector<Peer> order_;
    std::vector<Peer> round_;  // who is called in this round
    std::size_t place_ = 0;
    bool may_lead_ = false;
    Time not_before_ = kLongAgo;
    Duration lease_{};
    Call call_;
    int pointers_ = 0;
};

// The order that a leader sends. Of the members it takes the first ones and some spread evenly over
// the rest, since a rack that fails may take all the first ones with it. Then come the other nodes.
// A node without a port cannot be called and is left out.
inline constexpr std::size_t kOrderFirst = 16, kOrderSpread = 16;
std::vector<Peer> order_of(std::span<const Member> newest, const std::vector<Peer>& others);

// The answer of a dormant service to a caller: the leader that its own node heard within 0.5 lease,
// else "wait".
Elsewhere dormant_answer(const std::optional<Peer>& leader, Time heard, Time now, Duration lease);

// PROTOCOL.md, rule 11: whether a leader that holds nothing yields to one with this standing.
// `mine` is the newest entry known here. A leader that holds a generation of an older entry does
// not know yet that it is succeeded, so nobody yields to it.
bool yields_to(const Standing& other, EntryNumber mine, bool stands_before_me);

}  // namespace ddprun::rendezvous
