// Who leads when the leader is silent (design 4.3, rules 9-11): the node's side of it, and the
// small questions that leaders and dormant services answer. Pure; the Caller is owned by the agent
// machine.
//
// All nodes know one order, told by the leader: members of the newest generation by rank, behind
// them others as they came. Of many members it names only some, for each of them is told it; who is
// not named comes after all that are. A node whose leader is lost calls that leader once more, then
// the order from its start, 0.15 lease each, and leads itself when its own turn comes:
//
//     lost ──▶ last leader ──▶ first of the order ──▶ … ──▶ itself: lead ──▶ … ──▶ from the start
//                 │ refused: the next at once    "elsewhere": there     "wait": again in 0.02 lease
//
// From the second round on the endpoint is called too, last, for a replaced ddprun may have come
// there. A node leads only if it shares the ledger: it has found the one that its leader named, by
// its mark.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "rendezvous/model/messages.h"

namespace ddprun::rendezvous {

class Caller {
  public:
    static constexpr int kMostPointers = 4;  // "elsewhere" followed in one turn

    explicit Caller(NodeId self) : self_(std::move(self)) {}

    // What the leader has told.
    void learn(std::vector<Peer> order) { order_ = std::move(order); }
    void led_by(const Peer& leader) { leader_ = leader; }
    const std::optional<Peer>& leader() const { return leader_; }
    const std::vector<Peer>& order() const { return order_; }
    void may_not_lead_before(Time when) { not_before_ = when; }

    struct Call {
        Peer peer;
        bool lead = false;  // it is this node's own turn: become the leader, then call oneself
        Time from{};        // not before
        Time until{};       // the end of its turn
    };
    // The leader is lost: the first call.
    Call begin(Time now, Duration lease, bool may_lead);
    // The call has failed, or has answered nothing in its turn.
    Call next(Time now);
    // The one called was not the leader.
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

// The order that a leader tells: of the newest generation's members the first ones, and some evenly
// from the rest, for a rack that goes may take all the first with it; then the others. Who offers no
// port cannot be called and does not stand in it.
inline constexpr std::size_t kOrderFirst = 16, kOrderSpread = 16;
std::vector<Peer> order_of(std::span<const Member> newest, const std::vector<Peer>& others);

// What a service that does not lead says to a node that calls it: the leader that its own node has
// heard within 0.5 lease, else "wait".
Elsewhere dormant_answer(const std::optional<Peer>& leader, Time heard, Time now, Duration lease);

// Rule 11: whether a leader that holds nothing yields to one that has answered so. `mine` is the
// newest entry known here; who holds a generation of an older one does not know yet that it is
// succeeded.
bool yields_to(const Standing& other, EntryNumber mine, bool stands_before_me);

}  // namespace ddprun::rendezvous
