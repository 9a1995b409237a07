// The messages of the agent link as plain structs, one for each message of proto/agent_link.proto.
// That file says what repeating a message does. Times in messages are relative ("how long ago"),
// because no two nodes share a clock. Pure values.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "proto/socket_owner.h"
#include "rendezvous/model/model.h"
#include "rendezvous/model/news.h"
#include "rendezvous/model/node_place.h"
#include "rendezvous/model/reach.h"
#include "rendezvous/model/recorded_calls.h"
#include "rendezvous/model/standstill.h"
#include "rendezvous/model/usage.h"

namespace ddprun::rendezvous {

// Number of ranks that are examined when a job hangs.
inline constexpr std::size_t kSlowest = 3;

// A planned stop: all nodes signal their workers, wait for the grace, then kill. The lease of the
// held generation goes on until the workers are gone.
struct Stop {
    Generation generation = kNoGeneration;
    int signal = 0;
    std::string reason;
    StopCause cause = StopCause::signal;
    std::optional<Duration> left = {};  // of the job's time, where it is known
    bool requeue = false;               // the job is to go on from the queue
    bool operator==(const Stop&) const = default;
};

// An event other than a worker's failure that ended a generation: a lost node, an expired lease, a
// stop.
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

// What operators have set of the limits during a generation, and no entry has recorded yet.
struct LimitsAsked {
    std::int64_t number = 0;  // grows with the time (job_limits.h); the highest counts; 0: none
    OperatorLimits limits;
    bool operator==(const LimitsAsked&) const = default;
};

// What is known about a generation and is in no ledger entry yet (generation_facts.h).
struct Facts {
    Generation generation = kNoGeneration;
    Reach reach = Reach::start;
    std::int64_t snapshot = -1;
    std::vector<NodeFailure> failures = {};  // the first ones, by time
    std::optional<Interruption> interruption = {};
    Duration interrupted{};                          // how long ago
    std::optional<std::vector<NodeId>> silent = {};  // members not heard since the first failure
    std::optional<Stop> stop = {};
    // How long ago any node heard the leader that held it.
    std::optional<Duration> led = {};
    std::optional<Duration> saved = {};  // how long ago `snapshot` was reported
    Duration saving{};                   // what its snapshots have taken from training
    LimitsAsked limits = {};
    bool operator==(const Facts&) const = default;
};
inline constexpr std::size_t kSilentTold = 8;

// ---- node → rendezvous

struct Hello {
    std::string run_id;
    NodeId node;
    std::string version;
    int requeue = 0;  // SLURM_RESTART_COUNT
    // The limits of the job from this node's command line, for ddprun-rendezvous, which learns of a
    // run from its first node. A leader inside the job uses its own, and refuses a node with
    // another `pmi`. `order` is not sent.
    Limits limits{};
    bool operator==(const Hello&) const = default;
};

// A worker and the newest step it has reported; -1: none.
struct RankStep {
    int rank = 0;
    std::int64_t step = -1;
    bool operator==(const RankStep&) const = default;
};

// The phases of a restart that this node has passed, and how long ago. They belong to the start of
// the generation that runs here, or to the end of the one that ran here.
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

// A node's report on itself. The node sends it every Beat period, and at once when floor, seen or
// running changes (PROTOCOL.md, rule 1).
struct Beat {
    std::int64_t number = 0;             // of this connection: 1, 2, 3, …
    std::int64_t echo = 0;               // newest Ack received on this connection; 0: none
    Generation floor = kNoGeneration;    // will never run a generation ≤ floor
    EntryNumber seen = kNoEntry;         // highest entry number that this node has heard of
    Generation running = kNoGeneration;  // the generation whose workers it runs or is stopping
    Duration silent{};  // how long no *other* leader has sent it an Ack; Duration::max(): never
    Reach reach = Reach::start;  // of `running`
    std::int64_t step = -1;      // newest progress reported, -1: none
    std::int64_t snapshot = -1;  // newest snapshot reported, -1: none
    std::int64_t reports = 0;    // number of progress reports by the workers of `running`
    Duration reported{};         // how long ago the newest report came
    Marks marks{};
    std::vector<RankStep> slowest = {};  // of its living workers, at most kSlowest, slowest first
    std::vector<Still> still = {};       // of its workers, those that stand still
    Pace pace = {};                      // of its workers, while they do not
    Duration saving{};  // what snapshots have taken from the training of one of its workers
    Usage usage = {};   // filled in by who sends it
    // For how long this node had stood still when the lease of what ran here passed (rule 28).
    Duration stood_still{};
    // All workers of `running` have exited 0, or stopped as a planned stop asked.
    bool complete = false;
    bool operator==(const Beat&) const = default;
};

struct Join {
    Offer offer;
    Beat beat;                      // the first of its connection, number 1
    std::uint64_t ledger_mark = 0;  // the Welcome's, if this node reads the ledger with it; else 0
    std::uint64_t job = 0;  // the Welcome's of who told it of its first entry; 0: nobody has
    Facts facts = {};       // about the newest generation that it has heard of
    bool operator==(const Join&) const = default;
};

// Workers of a generation have failed on this node. The node sends it at once. It is also the
// answer to Examine: then the workers still live, and each outcome is `hung`; or there is none.
struct Report {
    Generation generation = kNoGeneration;
    std::vector<WorkerOutcome> outcomes;
    std::vector<RecordedCalls> recorded = {};  // of the answer: at most kRecordsTold
    bool operator==(const Report&) const = default;
};

// This node asks for a stop of all nodes: it got a signal, or the time limit of the job is near.
// The first request counts. A later plain signal (cause `signal`) withdraws the requeue of an
// earlier request. With the cause `node_leaves` it asks to leave; where too few nodes would be
// left, that is a plain signal.
struct StopAsked {
    int signal = 0;
    std::string reason;
    StopCause cause = StopCause::signal;
    std::optional<Duration> left = {};  // of the job's time, where it is known
    bool requeue = false;  // the job is to go on from the queue, by this node's options
    bool operator==(const StopAsked&) const = default;
};

// The node leaves in good order; its workers are gone.
struct Leave {
    std::string reason;
    bool operator==(const Leave&) const = default;
};

// A keeper's final message: ddprun and the workers of that incarnation are gone. It proves as much
// as a floor above every generation.
struct Gone {
    NodeId node;
    bool operator==(const Gone&) const = default;
};

// SIGKILL has no effect on a worker of this node, or the node can run no worker at all. It can
// never run a generation again, but it stays connected to get the verdict. What is left of the
// worker has SIGKILL pending and runs no instruction any more, so this proves as much as Gone.
struct Unusable {
    std::string reason;
    bool operator==(const Unusable&) const = default;
};

// Asks a service whether it leads, and which generation. Leaders ask each other, and the service
// checks with it whether a port answers.
struct Inquire {
    Hello as;  // the caller, for the proof of identity; it does not count as a Hello
    bool operator==(const Inquire&) const = default;
};

// One TCP connection to the workers' store. `from` is the end on the host of the node that is
// asked.
struct SocketEnds {
    std::string from;
    std::uint16_t from_port = 0;
    std::string to;
    std::uint16_t to_port = 0;
    bool operator==(const SocketEnds&) const = default;
};

// The node with the workers' store asks who has these connections open
// (store/door/owner_questions.h).
struct AskOwners {
    std::int64_t number = 0;
    std::vector<SocketEnds> sockets;
    bool operator==(const AskOwners&) const = default;
};

// An operator's program asks for a service of proto/control.proto.
struct Operate {
    Hello as;                // the caller, for the proof of identity; the name is "alice@login1"
    std::uint64_t job = 0;   // the mark of the job's ledger; 0: not known
    bool this_node = false;  // he asks this node about its workers, whoever leads
    bool operator==(const Operate&) const = default;
};

using ToLeader = std::variant<Hello, Join, Beat, Report, StopAsked, Leave, Gone, Unusable, Inquire,
                              AskOwners, Operate>;

// The caller that opens a connection with this message; null: the message may not be the first.
inline const Hello* caller_of(const ToLeader& opening) {
    if (const auto* inquire = std::get_if<Inquire>(&opening)) return &inquire->as;
    if (const auto* operate = std::get_if<Operate>(&opening)) return &operate->as;
    return std::get_if<Hello>(&opening);
}

// ---- rendezvous → node

struct Welcome {
    NodeId leader;  // its incarnation is new each time a leader becomes active
    Times times;
    std::vector<Peer> order;        // who leads after this leader; empty: nobody
    int max_nodes = 1;              // 1: a job of one node, which leads itself, has no lease
    Peer at;                        // where this leader is called
    std::string ledger;             // name of the ledger, for log lines
    std::uint64_t ledger_mark = 0;  // by which it is known; 0: nobody else has to read it
    std::uint64_t job = 0;          // tells it from others of this run id; 0: it is not told
    bool operator==(const Welcome&) const = default;
};

// An operator wants a snapshot of the generation that runs; its workers go on training.
struct SnapshotAsked {
    std::int64_t number = 0;  // grows from request to request, over all leaders of the job
    std::string by;           // "alice@login1"
    bool operator==(const SnapshotAsked&) const = default;
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
    // Of the generation held, while no newer snapshot has been reported. In every Ack.
    std::optional<SnapshotAsked> snapshot = {};
    std::optional<News> news = {};  // to a member, where it does not have them yet
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

// The node has nothing to run now: it is a spare, or the job waits for other nodes. The sentence
// says which. An empty sentence only carries a new order.
struct Parked {
    std::string sentence;
    std::vector<Peer> order = {};  // as in Welcome, newer
    bool operator==(const Parked&) const = default;
};

// This service does not lead (any more). Call the given address; if it is empty, wait a moment and
// call again. Do not lead for the time `rest`.
struct Elsewhere {
    std::string address;
    std::uint16_t port = 0;
    Duration rest{};
    bool operator==(const Elsewhere&) const = default;
};

// No rank has made progress for a long time: keep what all workers of the node do, and find out
// where these are. Answered by a Report, also if there are none of these.
struct Examine {
    Generation generation = kNoGeneration;
    std::vector<int> ranks;
    bool operator==(const Examine&) const = default;
};

struct Finished {
    Ending ending;
    bool operator==(const Finished&) const = default;
};

// The node does not belong here (another run, another version). It must not call again.
struct Refused {
    std::string sentence;
    bool for_good = false;  // said by this job itself; else perhaps by another job on its port
    bool operator==(const Refused&) const = default;
};

// The answer to Inquire and to Operate.
struct Standing {
    NodeId node;
    bool leads = false;
    Generation held = kNoGeneration;
    EntryNumber entry = kNoEntry;  // newest that it knows
    bool operator==(const Standing&) const = default;
};

// The answer to AskOwners: as many owners, in the order of its sockets.
struct Owners {
    std::int64_t number = 0;
    std::vector<SocketOwner> owners;
    bool operator==(const Owners&) const = default;
};

using ToNode = std::variant<Welcome, Ack, Assigned, Parked, Elsewhere, Stop, Finished, Refused,
                            Standing, Examine, Owners>;

}  // namespace ddprun::rendezvous
