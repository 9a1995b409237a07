// All inputs (Event) and outputs (Effect) of the rendezvous machine, as plain values. The service
// turns what happens into events, and performs the effects in the given order.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <variant>
#include <vector>

#include "base/note.h"
#include "rendezvous/model/messages.h"
#include "rendezvous/model/operator.h"

namespace ddprun::rendezvous {

// One connection of a node. The leader's own node has a session too, but no socket. The service
// numbers sessions and never reuses a number.
using Session = Strong<struct SessionTag, std::int64_t>;

// ---- events

// A message arrived, and its frame passed the checks of wire/. The first message of a node is
// Hello; a keeper sends only Gone.
struct Came {
    Session session;
    ToLeader message;
};
struct ConnectionLost {
    Session session;
};
// The answer to ReadLedger: the entries from the requested number on, in order; may be empty.
struct LedgerRead {
    std::vector<LedgerEntry> entries;
};
// The ledger cannot be read now. The shell tries again.
struct LedgerUnread {
    std::string sentence;
};
// The answer to CreateEntry: this entry won, another entry has that number, or the ledger failed.
struct LedgerCreated {
    enum class Outcome { won, lost, failed };
    Outcome outcome = Outcome::won;
    LedgerEntry entry;     // what stands there (won, lost)
    std::string sentence;  // failed: why
};
// The answer to LookLedger.
struct LedgerLooked {
    std::int64_t number = 0;  // of the question
    // The highest restart count with which an allocation of this job has begun; -1: none has. None:
    // the ledger did not answer.
    std::optional<int> newest;
};
// This service leads from now on: at the start of the job, or because its turn has come
// (PROTOCOL.md, rule 10).
struct Lead {
    Peer self;                      // where other nodes reach it
    std::string ledger = "memory";  // name of the ledger that it leads with
    // Identifies that ledger; 0: no other node can read it.
    std::uint64_t ledger_mark = 0;
};
// The agent of this node got an Ack from a leader elsewhere. An empty peer: that leader is lost.
struct LeaderHeard {
    Peer leader;
};
// A Call was answered. A call that failed makes no event: a refused connection proves no more than
// silence does, since a firewall may refuse it. The answer describes the present only, so a late
// answer does no harm.
struct Called {
    NodeId node;  // that was called
    Standing standing;
};
// The answer to Requeue. It comes after a failure too, which the shell has logged.
struct Requeued {};
// The answer to AskNodeStates: hosts that Slurm has taken out of service, each with the state as
// Slurm names it ("drained", "down").
struct OutOfService {
    std::map<std::string, std::string> nodes;
};
// An operator who has proved that he has the job's secret asks for something. Answered by Answered.
struct Operated {
    std::string by;  // "alice@login1"
    OperatorAction action;
};
struct Tick {};  // the time of next_deadline() has come

using Event =
    std::variant<Came, ConnectionLost, LedgerRead, LedgerUnread, LedgerCreated, LedgerLooked, Lead,
                 LeaderHeard, Called, Requeued, OutOfService, Operated, Tick>;

// ---- effects

struct Send {
    Session session;
    ToNode message;
    bool operator==(const Send&) const = default;
};
// Send what is queued, then close the connection.
struct Close {
    Session session;
    bool operator==(const Close&) const = default;
};
struct ReadLedger {
    EntryNumber from;
    bool operator==(const ReadLedger&) const = default;
};
struct CreateEntry {
    LedgerEntry entry;
    bool operator==(const CreateEntry&) const = default;
};
// Ask the ledger whether a newer allocation of the job has begun. The ledger itself must answer,
// and no cache. `from`: the entries before it are known.
struct LookLedger {
    std::int64_t number = 0;
    EntryNumber from;
    bool operator==(const LookLedger&) const = default;
};
// Connect to that service and send Inquire. If an answer comes `within` that time, report it as
// Called.
struct Call {
    Peer peer;
    Duration within;
    bool operator==(const Call&) const = default;
};
// Ask the kernel of this host whose these connections are, and answer that session with Owners.
struct LookUpOwners {
    Session session;
    AskOwners asked;
    bool operator==(const LookUpOwners&) const = default;
};
// Keep a connection to the service that leads after this one, for the final message of this host's
// keeper (PROTOCOL.md, rule 12). It replaces the previous one. No peer: keep none.
struct Standby {
    std::optional<Peer> peer;
    bool operator==(const Standby&) const = default;
};
// Put the job back into Slurm's queue. The end is recorded and no worker lives. This effect comes
// at most once in an allocation. It comes before the nodes get the verdict, because srun may kill
// the other nodes when the first one exits. Answered by Requeued.
struct Requeue {
    bool progressed = false;  // the last generation made progress (reach.h)
    bool operator==(const Requeue&) const = default;
};
// Ask Slurm which of these hosts it has taken out of service. Answered by OutOfService, or not at
// all; the job does not wait for the answer.
struct AskNodeStates {
    std::vector<std::string> hosts;
    bool operator==(const AskNodeStates&) const = default;
};
// The answer to an Operated, in the same step.
struct Answered {
    OperatorAnswer answer = OperatorAnswer::done;
    std::string sentence;
    bool operator==(const Answered&) const = default;
};
// The job has ended and all connected nodes have the verdict. The service sends what is queued;
// then it may be destroyed.
struct Closed {
    Ending ending;
    bool operator==(const Closed&) const = default;
};

using Effect = std::variant<Send, Close, ReadLedger, CreateEntry, LookLedger, Call, LookUpOwners,
                            Standby, Requeue, AskNodeStates, Answered, Closed, Note>;
using Effects = std::vector<Effect>;

}  // namespace ddprun::rendezvous
