// Keeps the nodes and their sessions (roster.h).
#include "rendezvous/rules/roster.h"

#include "rendezvous/model/durations.h"

namespace ddprun::rendezvous {

std::optional<Session> Roster::hello(Session session, const NodeId& node) {
    NodeState& state = nodes_[node];
    const std::optional<Session> replaced = state.session;
    if (replaced) by_session_.erase(*replaced);
    // What the node confirmed and vowed on its old connection stays true. Everything else belongs
    // to that connection and must not survive it: numbers of Acks start again.
    const auto confirmed = state.confirmed;
    const Beat beat = state.beat;
    const Time beat_came = state.beat_came;
    const bool arrived = state.arrived;
    state = NodeState{};
    state.id = node;
    state.session = session;
    state.confirmed = confirmed;
    state.beat = beat;
    state.beat_came = beat_came;
    state.arrived = arrived;
    by_session_[session] = &state;
    return replaced;
}

void Roster::lost(Session session) {
    if (NodeState* state = of(session)) {
        state->session.reset();
        state->joined = false;
    }
    by_session_.erase(session);
}

void Roster::forget(Time now) {
    nodes_.clear();
    by_session_.clear();
    next_look_ = kLongAgo;
    last_step_ = now;
    ack_number_ = 0;
}

Roster::Look Roster::looks_for_silence(Time now, Duration lease) {
    // Measured at every step, before the check whether a look is due: only the gap since the last
    // step shows that this process got no processor.
    const bool stalled = now - last_step_ > share(lease, kStalled);
    last_step_ = now;
    if (now < next_look_) return Look::not_due;
    next_look_ = now + share(lease, kScan);
    return stalled ? Look::stalled : Look::due;
}

std::vector<Session> Roster::silent(Time now, Duration lease, const NodeId& self) const {
    std::vector<Session> sessions;
    for (const auto& [id, node] : nodes_)
        if (node.connected() && id != self && now - node.beat_came > share(lease, kNodeSilent))
            sessions.push_back(*node.session);
    return sessions;
}

NodeState* Roster::of(Session session) {
    const auto it = by_session_.find(session);
    return it == by_session_.end() ? nullptr : it->second;
}

NodeState* Roster::find(const NodeId& node) {
    const auto it = nodes_.find(node);
    return it == nodes_.end() ? nullptr : &it->second;
}

const NodeState* Roster::find(const NodeId& node) const {
    const auto it = nodes_.find(node);
    return it == nodes_.end() ? nullptr : &it->second;
}

bool Roster::set_gone(const NodeId& node, Time now) { return gone_.emplace(node, now).second; }

std::optional<Time> Roster::gone_since(const NodeId& node) const {
    const auto it = gone_.find(node);
    return it == gone_.end() ? std::nullopt : std::optional(it->second);
}

}  // namespace ddprun::rendezvous
