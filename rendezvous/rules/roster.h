// All nodes that have connected: which incarnation, on which session, and what each last said about
// itself. Pure; owned by the rendezvous machine. A node never has two live sessions: the newer one
// replaces the older.
#pragma once

#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "rendezvous/model/events.h"
#include "rendezvous/model/node_hash.h"

namespace ddprun::rendezvous {

struct SentAck {
    std::int64_t number;
    Time at;
};

// The contents of the newest Ack to a node.
struct Told {
    EntryNumber entry = kNoEntry;
    Generation held = kNoGeneration, over = kNoGeneration;
    Time until = kLongAgo;   // end of the lease of `held`; kLongAgo: nothing is granted
    std::int64_t facts = 0;  // the revision of the facts
    std::size_t news = 0;    // how many, of the newest generation
};

struct NodeState {
    NodeId id;
    std::optional<Session> session;  // none: its connection is gone
    bool joined = false;             // on this connection
    Time came = kLongAgo;            // when it joined on this connection
    Offer offer;
    Beat beat;                  // newest on this connection
    Time beat_came = kLongAgo;  // or the one of the connection before
    // Sent on this connection; the newest echoed one and all later.
    std::vector<SentAck> acks;
    Told told;                      // contents of the newest Ack
    std::optional<Time> confirmed;  // when the newest Ack that it has echoed was sent
    // The generation it was sent on this connection.
    std::optional<Generation> assigned;
    bool arrived = false;   // it has joined at least once
    bool told_end = false;  // it was sent Finished

    bool idle() const { return beat.running == kNoGeneration; }
    bool connected() const { return session.has_value() && joined; }
};

class Roster {
  public:
    Roster() = default;
    // Not copied: by_session_ points into nodes_.
    Roster(Roster&&) = default;
    Roster& operator=(Roster&&) = default;

    // Registers a connection that sent Hello. Returns the session that it replaces, if any.
    std::optional<Session> hello(Session session, const NodeId& node);
    void lost(Session session);
    // Everything except the proofs in gone_: this node no longer leads.
    void forget(Time now);

    NodeState* of(Session session);
    NodeState* find(const NodeId& node);
    const NodeState* find(const NodeId& node) const;

    // Records the proof that the process and its workers are gone. Returns true if it is new.
    bool set_gone(const NodeId& node, Time now);
    bool gone(const NodeId& node) const { return gone_.contains(node); }
    std::optional<Time> gone_since(const NodeId& node) const;

    // ---- who is silent, looked at ten times a lease
    enum class Look { not_due, stalled, due };
    // stalled: this process itself stood still, so silence of others proves nothing now.
    Look looks_for_silence(Time now, Duration lease);
    // Sessions of nodes that have sent no Beat for too long, except the session of `self`.
    std::vector<Session> silent(Time now, Duration lease, const NodeId& self) const;

    std::int64_t next_ack() { return ++ack_number_; }

    std::map<NodeId, NodeState>& nodes() { return nodes_; }
    const std::map<NodeId, NodeState>& nodes() const { return nodes_; }

  private:
    std::map<NodeId, NodeState> nodes_;
    std::unordered_map<Session, NodeState*> by_session_;
    std::unordered_map<NodeId, Time> gone_;  // when this process heard it
    Time next_look_ = kLongAgo, last_step_ = kLongAgo;
    std::int64_t ack_number_ = 0;
};

}  // namespace ddprun::rendezvous
