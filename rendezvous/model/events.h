// All that can happen to the rendezvous machine (Event) and all it can ask for (Effect). Plain
// values; the service makes the one and performs the other, in the order given.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <variant>
#include <vector>

#include "base/note.h"
#include "rendezvous/model/messages.h"

namespace ddprun::rendezvous {

// One connection of a node (or the leader's own node, which has no socket). Numbered by the
// service, never reused.
using Session = Strong<struct SessionTag, std::int64_t>;

// ---- events

// A message came on a connection whose frames have passed wire.cc. The first is Hello, from a
// keeper Gone.
struct Came {
    Session session;
    ToLeader message;
};
struct ConnectionLost {
    Session session;
};
// The ledger was read: its newest entries from the asked one on, in order, perhaps none.
struct LedgerRead {
    std::vector<LedgerEntry> entries;
};
// It cannot be read just now; the shell tries again.
struct LedgerUnread {
    std::string sentence;
};
// A create has returned: it is ours, another's entry stands there, or the ledger failed.
struct LedgerCreated {
    enum class Outcome { won, lost, failed };
    Outcome outcome = Outcome::won;
    LedgerEntry entry;     // what stands there (won, lost)
    std::string sentence;  // failed: why
};
// This service is to lead from now on: at the start, or because its node's own turn has come.
struct Lead {
    Peer self;                      // where it is called
    std::string ledger = "memory";  // the name of the one with which it leads
    std::uint64_t ledger_mark = 0;  // by which others know it; 0: nobody else can read it
};
// Its own node has heard a leader elsewhere: an Ack came. An empty one: that leader is lost.
struct LeaderHeard {
    Peer leader;
};
// A Call was answered. One that failed says nothing: a refused connection may be a firewall's, so
// that it proves no more than silence does. Only what the answer says of the moment counts, so a
// late one does no harm.
struct Called {
    NodeId node;  // that was called
    Standing standing;
};
// The answer to Requeue: it is done, or has failed and was said.
struct Requeued {};
// The answer to AskNodeStates: those that Slurm has taken out of service, each with its state in
// Slurm's word ("drained", "down").
struct OutOfService {
    std::map<std::string, std::string> nodes;
};
struct Tick {};  // the deadline of next_deadline() has come

using Event = std::variant<Came, ConnectionLost, LedgerRead, LedgerUnread, LedgerCreated, Lead,
                           LeaderHeard, Called, Requeued, OutOfService, Tick>;

// ---- effects

struct Send {
    Session session;
    ToNode message;
    bool operator==(const Send&) const = default;
};
// Flush what was sent, then close.
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
// Connect anew to that service and say Inquire; tell its answer, if one comes `within` that time.
struct Call {
    Peer peer;
    Duration within;
    bool operator==(const Call&) const = default;
};
// Keep a link to that service, which will lead after this one, for the keeper's last word; instead
// of the one before. Nobody: keep none.
struct Standby {
    std::optional<Peer> peer;
    bool operator==(const Standby&) const = default;
};
// Put the job back into Slurm's queue: the end is recorded, no worker lives. Comes once at the most
// in the life of an allocation, and before the nodes are told the end, for the first of them that
// leaves may make srun kill the others. Answered by Requeued.
struct Requeue {
    bool operator==(const Requeue&) const = default;
};
// Which of these hosts has Slurm taken out of service? Answered by OutOfService, or not at all: the
// job waits for no answer.
struct AskNodeStates {
    std::vector<std::string> hosts;
    bool operator==(const AskNodeStates&) const = default;
};
// The job has ended and everyone was told: the service flushes, then may be destroyed.
struct Closed {
    Ending ending;
    bool operator==(const Closed&) const = default;
};

using Effect = std::variant<Send, Close, ReadLedger, CreateEntry, Call, Standby, Requeue,
                            AskNodeStates, Closed, Note>;
using Effects = std::vector<Effect>;

}  // namespace ddprun::rendezvous
