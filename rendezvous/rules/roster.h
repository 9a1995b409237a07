// Who is a member of the job, in which incarnation, connected or not, and what it last said of
// itself. Pure; owned by the rendezvous machine. Two sessions of one node never live at once: the
// newer one counts.
#pragma once

#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "rendezvous/model/events.h"

namespace ddprun::rendezvous {

struct SentAck {
    std::int64_t number;
    Time at;
};

// What an Ack says.
struct Told {
    EntryNumber entry = kNoEntry;
    Generation held = kNoGeneration, over = kNoGeneration;
    Time until = kLongAgo;   // when the lease of `held` ends; kLongAgo: nothing is granted
    std::int64_t facts = 0;  // their revision
};

struct NodeState {
    NodeId id;
    std::optional<Session> session;  // none: its connection is gone
    bool joined = false;             // on this connection
    Offer offer;
    Beat beat;                  // newest on this connection
    Time beat_came = kLongAgo;  // or the one of the connection before
    std::vector<SentAck> acks;  // sent on this connection, from the newest that it has echoed on
    Told told;                  // by the newest of them
    std::optional<Time> confirmed;       // when the newest Ack that it has echoed was sent
    std::optional<Generation> assigned;  // what it was sent on this connection
    bool arrived = false;                // it has joined at some time
    bool told_end = false;               // it was sent Finished

    bool idle() const { return beat.running == kNoGeneration; }
    bool connected() const { return session.has_value() && joined; }
};

class Roster {
  public:
    Roster() = default;
    // Not copied, for sessions point into it.
    Roster(Roster&&) = default;
    Roster& operator=(Roster&&) = default;

    // A connection said Hello. Returns the session that it replaces, if any.
    std::optional<Session> hello(Session session, const NodeId& node);
    void lost(Session session);
    void forget(Time now);  // all but the proofs: another leads now

    NodeState* of(Session session);
    NodeState* find(const NodeId& node);
    const NodeState* find(const NodeId& node) const;

    // Proof that process and workers are gone; true when it is news.
    bool set_gone(const NodeId& node, Time now);
    bool gone(const NodeId& node) const { return gone_.contains(node); }
    std::optional<Time> gone_since(const NodeId& node) const;

    // ---- who is silent, looked at ten times a lease
    enum class Look { not_due, stalled, due };
    // stalled: this process itself has stood still, so silence proves nothing now.
    Look looks_for_silence(Time now, Duration lease);
    // Connections of nodes that have sent no Beat for too long; not that of `self`.
    std::vector<Session> silent(Time now, Duration lease, const NodeId& self) const;

    std::int64_t next_ack() { return ++ack_number_; }

    std::map<NodeId, NodeState>& nodes() { return nodes_; }
    const std::map<NodeId, NodeState>& nodes() const { return nodes_; }

  private:
    std::map<NodeId, NodeState> nodes_;
    std::unordered_map<Session, NodeState*> by_session_;
    std::map<NodeId, Time> gone_;  // when this process heard it
    Time next_look_ = kLongAgo, last_step_ = kLongAgo;
    std::int64_t ack_number_ = 0;
};

}  // namespace ddprun::rendezvous
