// Whom a node calls next, and which leader yields (succession.h).
#include "rendezvous/rules/succession.h"

#include <algorithm>

#include "rendezvous/model/durations.h"

namespace ddprun::rendezvous {
namespace {

bool contains(const std::vector<Peer>& peers, const NodeId& node) {
    return std::any_of(peers.begin(), peers.end(),
                       [&](const Peer& peer) { return peer.node == node; });
}

}  // namespace

Caller::Call Caller::begin(Time now, Duration lease, bool may_lead) {
    lease_ = lease;
    may_lead_ = may_lead;
    round_.clear();
    if (leader_ && !is_self(*leader_)) round_.push_back(*leader_);
    for (const Peer& peer : order_)
        if (!leader_ || peer.node != leader_->node || is_self(peer)) round_.push_back(peer);
    place_ = 0;
    // A newcomer that is in no order yet calls itself last.
    if (!contains(round_, self_)) round_.push_back(Peer{self_, {}, 0});
    return turn(now, round_.front());
}

Caller::Call Caller::turn(Time now, const Peer& peer) {
    pointers_ = 0;
    call_ = Call{peer, false, now, now + share(lease_, kCallTurn)};
    if (!is_self(peer)) return call_;
    if (!may_lead_ || now < not_before_) return next(now);
    call_.lead = true;
    return call_;
}

Caller::Call Caller::next(Time now) {
    if (++place_ < round_.size()) return turn(now, round_[place_]);
    // The next round starts a moment later. If all calls are refused and this node may not lead,
    // the loop would otherwise spin without a pause.
    leader_.reset();
    round_ = order_;
    if (!contains(round_, self_)) round_.push_back(Peer{self_, {}, 0});
    round_.push_back(Peer{});  // the endpoint: a new process may have started there
    place_ = 0;
    const Time from = std::max(now, call_.from) + share(lease_, kCallAgain);
    if (is_self(round_.front()) && (!may_lead_ || from < not_before_)) ++place_;
    return turn(from, round_[place_]);
}

Caller::Call Caller::elsewhere(Time now, const Elsewhere& answer) {
    may_not_lead_before(std::max(not_before_, now + answer.rest));
    if (answer.address.empty()) {
        call_.from = now + share(lease_, kCallAgain);
        return call_.from < call_.until && !is_self(call_.peer) ? call_ : next(now);
    }
    // Two services may point at each other while leaders change. The limit ends such a circle.
    if (++pointers_ > kMostPointers) return next(now);
    call_ = Call{Peer{{}, answer.address, answer.port}, false, now, now + share(lease_, kCallTurn)};
    return call_;
}

std::vector<Peer> order_of(std::span<const Member> newest, const std::vector<Peer>& others) {
    std::vector<Peer> order;
    const std::size_t first = std::min(newest.size(), kOrderFirst);
    const std::size_t rest = newest.size() - first, spread = std::min(rest, kOrderSpread);
    for (std::size_t i = 0; i < first + spread; ++i) {
        const Member& member = newest[i < first ? i : first + (i - first) * rest / spread];
        if (member.offer.service_port != 0)
            order.push_back({member.node, member.offer.address, member.offer.service_port});
    }
    const std::size_t members = order.size();
    for (const Peer& peer : others) {
        const auto end = order.begin() + static_cast<std::ptrdiff_t>(members);
        if (peer.port != 0 && std::none_of(order.begin(), end, [&](const Peer& member) {
                return member.node == peer.node;
            }))
            order.push_back(peer);
    }
    return order;
}

Elsewhere dormant_answer(const std::optional<Peer>& leader, Time heard, Time now, Duration lease) {
    if (!leader || now - heard >= share(lease, kHeardWithin)) return {};
    return {leader->address, leader->port, {}};
}

bool yields_to(const Standing& other, EntryNumber mine, bool stands_before_me) {
    if (!other.leads) return false;
    if (other.held > kNoGeneration) return other.entry >= mine;
    return stands_before_me;
}

}  // namespace ddprun::rendezvous
