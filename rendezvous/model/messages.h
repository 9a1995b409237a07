// The messages of the agent link as plain structs, one for each message of proto/agent_link.proto;
// what repeating one does stands there. Durations are relative on purpose: no two nodes share a
// clock. Pure values.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "rendezvous/model/model.h"
#include "rendezvous/model/node_place.h"

namespace ddprun::rendezvous {

inline constexpr std::size_t kSlowest = 3;  // ranks that are looked at when a job hangs

// All are to stop as planned within a held generation: signal the workers, grace, kill. The lease
// goes on until they are gone.
struct Stop {
    Generation generation = kNoGeneration;
    int signal = 0;
    std::string reason;
    StopCause cause = StopCause::signal;
    std::optional<Duration> left = {};  // of the job's time, where it is known
    bool requeue = false;               // the job is to go on from the queue
    bool operator==(const Stop&) const = default;
};

// What ended a generation that was no worker's failure: a node is lost, a lease has passed, ….
struct Interruption {
    std::string node;  // that is lost; empty: none
    std::string sentence;
    bool blame = false;  // on that node: it did not leave in good order
    bool operator==(const Interruption&) const = default;
};

struct NodeFailure {
    std::string node;
    WorkerOutcome outcome;
    bool operator==(const NodeFailure&) const = default;
};

// What is known of a generation that no ledger entry says yet (generation_facts.h).
struct Facts {
    Generation generation = kNoGeneration;
    bool progressed = false;
    std::int64_t snapshot = -1;
    std::vector<NodeFailure> failures = {};  // the first ones, by time
    std::optional<Interruption> interruption = {};
    Duration interrupted{};                          // how long ago
    std::optional<std::vector<NodeId>> silent = {};  // members not heard since the first failure
    std::optional<Stop> stop = {};
    std::optional<Duration> led = {};  // how long ago the leader that held it was heard
    bool operator==(const Facts&) const = default;
};
inline constexpr std::size_t kSilentTold = 8;

// ---- node → rendezvous

struct Hello {
    std::string run_id;
    NodeId node;
    std::string version;
    int requeue = 0;  // SLURM_RESTART_COUNT
    // What its command line says of the job, for a rendezvous outside that hears of the run first
    // by this node; a leader inside has its own. `order` does not travel.
    Limits limits{};
    bool operator==(const Hello&) const = default;
};

// A worker and the newest step it has reported; -1: none.
struct RankStep {
    int rank = 0;
    std::int64_t step = -1;
    bool operator==(const RankStep&) const = default;
};

// Which phases of a restart are past on this node, and for how long: of the making of the
// generation that it runs, or of the end of the one that it has run.
struct Mark {
    RestartPhase phase = RestartPhase::told;
    Duration ago{};
    bool operator==(const Mark&) const = default;
};
struct Marks {
    Generation generation = kNoGeneration;
    std::vector<Mark> passed;
    bool operator==(const Marks&) const = default;
};

// A node's word on itself, every heartbeat period and at once when floor, seen or running changes
// (design 4.3, rule 1).
struct Beat {
    std::int64_t number = 0;             // of this connection: 1, 2, 3, …
    std::int64_t echo = 0;               // newest Ack received on this connection; 0: none
    Generation floor = kNoGeneration;    // will never run a generation ≤ floor
    EntryNumber seen = kNoEntry;         // highest entry number heard of
    Generation running = kNoGeneration;  // the generation whose workers it runs or is stopping
    Duration silent{};  // how long no *other* leader has sent it an Ack; Duration::max(): never
    bool progressed =
        false;  // a worker of `running` has reported progress (or lived 60 s after first contact)
    std::int64_t step = -1;      // newest progress reported, -1: none
    std::int64_t snapshot = -1;  // newest snapshot reported, -1: none
    std::int64_t reports = 0;    // of progress by the workers of `running`
    Duration reported{};         // how long ago the newest of them came
    Marks marks{};
    std::vector<RankStep> slowest = {};  // of its living workers, at most kSlowest, slowest first
    bool complete = false;  // all workers of `running` have exited 0, or as a planned stop wants it
    bool operator==(const Beat&) const = default;
};

struct Join {
    Offer offer;
    Beat beat;                      // the first of its connection, number 1
    std::uint64_t ledger_mark = 0;  // the Welcome's, if this node reads the ledger with it; else 0
    std::uint64_t job = 0;  // the Welcome's of who told it of its first entry; 0: nobody has
    Facts facts = {};       // of the newest generation that it has heard of
    bool operator==(const Join&) const = default;
};

// Workers of a generation have failed on this node; said at once. The answer to Examine is one too:
// its outcomes are of workers that live, `hung`.
struct Report {
    Generation generation = kNoGeneration;
    std::vector<WorkerOutcome> outcomes;
    bool operator==(const Report&) const = default;
};

// All are to stop: this node got a signal, or sees the end of the job's time coming. The first one
// counts; a later plain signal (cause `signal`) takes back the requeue that an earlier one wanted.
struct StopAsked {
    int signal = 0;
    std::string reason;
    StopCause cause = StopCause::signal;
    std::optional<Duration> left = {};  // of the job's time, where it is known
    bool requeue = false;  // the job is to go on from the queue, by this node's options
    bool operator==(const StopAsked&) const = default;
};

// The node goes away in good order; its workers are gone.
struct Leave {
    std::string reason;
    bool operator==(const Leave&) const = default;
};

// A keeper's last word: ddprun and workers of that incarnation are gone. Proof, like a floor of
// every generation.
struct Gone {
    NodeId node;
    bool operator==(const Gone&) const = default;
};

// The node's workers cannot be killed (they hang in the kernel): it can never run a generation
// again, but stays connected to hear how the job ends. SIGKILL is pending for what is left, so no
// instruction of it will run: as good a proof as Gone.
struct Unusable {
    std::string reason;
    bool operator==(const Unusable&) const = default;
};

// Whether that service leads, and what: asked by other leaders, and to see whether a port answers.
struct Inquire {
    Hello as;  // who asks, for the proof of identity; the node says no Hello by it
    bool operator==(const Inquire&) const = default;
};

using ToLeader = std::variant<Hello, Join, Beat, Report, StopAsked, Leave, Gone, Unusable, Inquire>;

// Who opens a connection with this message; null: it is none that may.
inline const Hello* caller_of(const ToLeader& opening) {
    if (const auto* inquire = std::get_if<Inquire>(&opening)) return &inquire->as;
    return std::get_if<Hello>(&opening);
}

// ---- rendezvous → node

struct Welcome {
    NodeId leader;  // its incarnation is new each time a leader becomes active
    Times times;
    std::vector<Peer> order;        // who leads after this leader; empty: nobody
    int max_nodes = 1;              // 1: a job of one node, which leads itself, has no lease
    Peer at;                        // where this leader is called
    std::string ledger;             // for sentences
    std::uint64_t ledger_mark = 0;  // by which it is known; 0: nobody else has to read it
    std::uint64_t job = 0;          // tells it from others of this run id; 0: it is not told
    bool operator==(const Welcome&) const = default;
};

struct Ack {
    std::int64_t number = 0;  // of the leader: 1, 2, 3, …
    std::int64_t beat = 0;    // the Beat it answers
    EntryNumber entry = kNoEntry;
    Generation held = kNoGeneration;
    std::optional<Duration>
        remaining;  // counted from the sending of the named Beat; none: nothing is granted
    Generation over = kNoGeneration;
    std::optional<Facts> facts = {};  // where the node does not have them yet
    bool operator==(const Ack&) const = default;
};

struct Assigned {
    EntryNumber entry = kNoEntry;
    NodePlace place;  // of the node that it is sent to
    std::int64_t beat = 0;
    Duration remaining{};          // Duration::max(): no deadline (a job of one node)
    std::vector<Peer> order = {};  // as in Welcome, newer
    bool operator==(const Assigned&) const = default;
};

// Nothing to do yet: spare, or waiting for others; the sentence says for whom. Without one it only
// tells the order anew.
struct Parked {
    std::string sentence;
    std::vector<Peer> order = {};  // as in Welcome, newer
    bool operator==(const Parked&) const = default;
};

// Not the leader, or not any more: call that address, or wait a little and call again where it is
// empty; and do not lead yourself for so long.
struct Elsewhere {
    std::string address;
    std::uint16_t port = 0;
    Duration rest{};
    bool operator==(const Elsewhere&) const = default;
};

// No rank has made progress for long: look where these workers are. Answered by a Report.
struct Examine {
    Generation generation = kNoGeneration;
    std::vector<int> ranks;
    bool operator==(const Examine&) const = default;
};

struct Finished {
    Ending ending;
    bool operator==(const Finished&) const = default;
};

// Not wanted here: other run, other version. Do not call again.
struct Refused {
    std::string sentence;
    bool operator==(const Refused&) const = default;
};

// The answer to Inquire.
struct Standing {
    NodeId node;
    bool leads = false;
    Generation held = kNoGeneration;
    EntryNumber entry = kNoEntry;  // newest that it knows
    bool operator==(const Standing&) const = default;
};

using ToNode = std::variant<Welcome, Ack, Assigned, Parked, Elsewhere, Stop, Finished, Refused,
                            Standing, Examine>;

}  // namespace ddprun::rendezvous
