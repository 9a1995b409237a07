// The data types of the rendezvous as plain structs: what a node is, what a generation is, the
// limits of a job, and how it ends. No behaviour and no thread; a value belongs to its holder.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/exit_code.h"
#include "base/time.h"
#include "proto/ids.h"
#include "rendezvous/model/time_records.h"

namespace ddprun::rendezvous {

// One ddprun process. The host name alone does not identify it: a restarted process on the same
// host is another node.
struct NodeId {
    std::string name;  // node_name.h
    Incarnation incarnation;
    auto operator<=>(const NodeId&) const = default;
};

// A node's rendezvous service, leading or dormant, and its address. An empty address means the
// endpoint that all nodes were given; port 0 means that nobody can call it.
struct Peer {
    NodeId node;
    std::string address;
    std::uint16_t port = 0;
    bool operator==(const Peer&) const = default;
};

// The configured times of a job. All other durations of the protocol are shares of the lease
// (durations.h).
struct Times {
    Duration lease = std::chrono::seconds{10};
    Duration join_timeout = std::chrono::seconds{600};
    Duration last_call = std::chrono::seconds{30};
    // After a requeue without a recorded end, at least this long before the first generation; the
    // least is kAllocationWait (durations.h).
    Duration requeue_wait{};
    bool operator==(const Times&) const = default;
};

// 3 restarts, but none before the job has made progress.
inline constexpr int kAutoRestarts = -1;

// What happens to a node that joins while fewer than max_nodes run (--on-join). The numbers are
// sent: never renumber.
enum class OnJoin : int {
    restart = 0,  // a larger generation is made, at the next snapshot
    wait = 1,     // it is taken in when a generation begins for another reason
    spare = 2,    // the world never grows; it takes the place of one that is lost
};

// The options of the job that the rendezvous needs.
struct Limits {
    int min_nodes = 1;
    int max_nodes = 1;
    int max_restarts = kAutoRestarts;
    int crash_loop = 3;  // same cause so often in a row without progress ends the job; 0 = off
    OnJoin on_join = OnJoin::restart;
    Duration join_interval = std::chrono::minutes{10};  // restart: at the latest after this
    Duration hang_timeout{};  // no rank's progress for so long ends the generation; 0 = off
    bool hang_auto = false;   // what stands still is judged by what is seen (hangs/standstill.h)
    bool pmi = false;         // the workers are programs of MPI; all nodes have to agree
    bool blame = true;        // a node that fails again and again is replaced by a spare
    std::vector<std::string>
        order;  // names of the nodes in the order of ranks; empty: by node rank, then name
    Times times;
    bool operator==(const Limits&) const = default;
};

// What operators have set of the limits, for the rest of the job. It replaces what the command line
// says.
struct OperatorLimits {
    std::optional<int> min_nodes, max_nodes;  // both or none
    std::optional<int> max_restarts;
    std::string by = {};  // who set the last of them: "alice@login1"; empty: nobody has
    bool operator==(const OperatorLimits&) const = default;
};
// More is no number of nodes, and no number of restarts.
inline constexpr int kMostNodes = 100'000, kMostRestarts = 1'000'000'000;

// What a node contributes when it joins.
struct Offer {
    int slots = 1;                 // workers it will start
    std::optional<int> node_rank;  // --node-rank or SLURM_NODEID
    std::string address;  // where the other nodes' workers reach it (MASTER_ADDR if it has rank 0)
    std::vector<std::string> addresses;  // all addresses of all its interfaces
    std::uint16_t service_port = 0;      // of its own (dormant) rendezvous service; 0: none
    std::uint16_t store_port = 0;        // already bound and listening
    std::string role = "default";        // --role: ranks are counted within it too
    bool operator==(const Offer&) const = default;
};

// A member of a generation with its place in the world.
struct Member {
    NodeId node;
    Offer offer;
    int rank_offset = 0;  // rank of its local rank 0; node rank is the member's index
    bool operator==(const Member&) const = default;
};

// One generation as the ledger records it. Members are in the order of node ranks. A member itself
// gets only its own place (node_place.h).
struct Assignment {
    Generation generation = kNoGeneration;
    std::vector<Member> members;
    int world_size = 0;
    int restarts = 0;      // of the budget that are used up
    int max_restarts = 0;  // what workers are told
    std::string
        cause;  // why this generation was made: "start", "rank 3 … exited with 1", "gpu03 joined"
    bool cold = false;  // each worker starts by itself, none is forked (restart_policy.h)

    const Offer& master() const { return members.front().offer; }
    // The member that is this node in this incarnation, or null.
    const Member* find(const NodeId& node) const {
        for (const Member& member : members)
            if (member.node == node) return &member;
        return nullptr;
    }
    bool operator==(const Assignment&) const = default;
};

inline constexpr int kTerminate = 15;  // SIGTERM

// SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2: the signals with which Slurm or a user asks a job to
// stop.
inline constexpr bool asks_to_stop(int signal) {
    return signal == kTerminate || signal == 2 || signal == 1 || signal == 10 || signal == 12;
}

// How long a worker's death by such a signal is not judged, when ddprun did not send the signal. If
// a stop request reaches any node in that time, the stop caused the death. Slurm without control
// groups signals workers and ddprun in any order.
inline constexpr Duration kSignalPatience = std::chrono::seconds{1};

// How a worker ended, as its own node saw it. For a hung worker: where it is.
struct WorkerOutcome {
    int rank = 0;
    int local_rank = 0;
    std::int64_t pid = 0;
    int exit_code = 0;  // of a worker that exited; 0 when a signal ended it
    int signal = 0;     // of a worker that was killed; else 0
    Duration
        age{};  // between its end and the sending of the report: places causes in time across nodes
    std::string sentence;  // "rank 13 (local 5 on gpu01) was killed by signal 9 (SIGKILL) …"
    std::string error;     // last line of its error file's message, or empty
    std::vector<std::string> tail;  // its last lines of output
    bool hung = false;              // it lives, and counts as the worker that all others wait for
    std::vector<std::string> stack = {};    // of a hung one: where it and the next slowest are
    std::string error_file = {};            // where its own account of its death is kept, or empty
    bool core_dumped = false;               // a remark says where
    bool out_of_memory = false;             // the kernel or the control group reports it
    std::vector<std::string> remarks = {};  // what else is known of this death, a line each
    bool warm = false;                      // it was forked from a server (rule 17)
    bool failed() const { return exit_code != 0 || signal != 0 || hung; }
    int code() const { return hung ? kHungCode : signal ? code_of_signal(signal) : exit_code; }
    bool operator==(const WorkerOutcome&) const = default;
};

// How the job ended. The numbers are sent and stand in ledgers: never renumber.
enum class Verdict : int {
    succeeded = 0,      // every worker of one generation exited 0
    worker_failed = 1,  // budget or crash loop; code is the first failed worker's
    unavailable = 2,    // could not meet or go on; 69
    internal = 3,       // our own fault; 70
    work_left = 4,      // stopped by time limit, preemption or drain with work left; 75
    user_signal = 5,    // stopped by a user's signal; 128+n
    left = 6,           // this node alone: it has left a job that goes on; 128+n
};

// Why a planned stop happens; it leaves time for a last snapshot. The numbers are sent.
enum class StopCause : int {
    signal = 0,        // by a user or Slurm, without another reason: ends with 128+n
    time_limit = 1,    // the job's time limit is near: ends with 75
    named_signal = 2,  // a signal of --requeue-signal: ends with 75
    larger_world = 3,  // to take in waiting nodes: the next generation follows
    node_leaves = 4,   // a node got SIGTERM (--on-sigterm): the next generation follows, without it
};

// A failure after the first one of its generation, without its output.
struct Consequence {
    std::string node;
    WorkerOutcome outcome;
    Duration after{};  // the first failure
    bool operator==(const Consequence&) const = default;
};
inline constexpr std::size_t kConsequencesTold = 8;  // the others are only counted

// A lost node that ended a generation, and what happened to it.
struct NodeLoss {
    std::string node;
    std::string sentence;  // "node gpu03 is gone: its ddprun has ended"
    bool operator==(const NodeLoss&) const = default;
};

struct Ending {
    Verdict verdict = Verdict::succeeded;
    int code = 0;          // what every node exits with
    std::string sentence;  // why, in one line
    std::optional<WorkerOutcome> first_failure;
    std::string first_failure_node;
    int consequences = 0;  // other workers that failed after it
    // The first of these, by time.
    std::vector<Consequence> told_consequences = {};
    // The node whose loss ended the last generation, or came with its end.
    std::optional<NodeLoss> loss = {};
    Generation generation = kNoGeneration;  // that failed
    // When the first cause happened, or the end if there is none: since 1970, by the clock of the
    // leader's host. 0: not known.
    Duration at{};
    // The leader that records this end puts the job back into Slurm's queue, once.
    bool requeue = false;
    bool operator==(const Ending&) const = default;
};

// The name of a verdict in reports: "worker_failed".
const char* to_string(Verdict verdict);

// An ending that names no worker and no node.
Ending ended(Verdict verdict, int code, std::string sentence);
// The nodes cannot meet, or cannot go on.
Ending unavailable(std::string sentence);
// All workers were stopped as planned; `signal`: of a plain signal, else 0.
Ending ended_by_stop(StopCause cause, int signal, std::string sentence);

// The host that was the first cause of a generation's end.
struct FirstCause {
    Generation generation = kNoGeneration;
    std::string node;
    bool operator==(const FirstCause&) const = default;
};

// Hosts that failed again and again (blame.h).
struct Blame {
    std::vector<FirstCause> causes;         // of the newest generations, oldest first
    std::vector<std::string> nodes;         // that are blamed, for the rest of the job
    std::vector<std::string> drained = {};  // that an operator has taken out, for the rest of it
    bool operator==(const Blame&) const = default;
};

// ---- what a ledger entry does

struct MakesGeneration {
    bool operator==(const MakesGeneration&) const = default;
};
// The newest generation goes on under another leader.
struct TakesOver {
    bool operator==(const TakesOver&) const = default;
};
struct EndsJob {
    Ending ending;
    bool operator==(const EndsJob&) const = default;
};
// The writer's allocation begins. From this entry on no earlier allocation of the job can write
// one (PROTOCOL.md, rule 26).
struct BeginsAllocation {
    // An earlier allocation made the newest generation and has recorded no end, so its workers may
    // still run.
    bool awaits = false;
    bool operator==(const BeginsAllocation&) const = default;
};
using EntryAct = std::variant<MakesGeneration, TakesOver, EndsJob, BeginsAllocation>;

// One entry of the ledger, written once. `random` lets its writer recognize its own entry when it
// repeats a create whose answer was lost.
struct LedgerEntry {
    EntryNumber number = kNoEntry;
    EntryAct act;
    NodeId leader;  // in this activation
    Peer at;        // where that leader is called
    std::uint64_t random = 0;
    int requeue = 0;             // SLURM_RESTART_COUNT of its writer
    std::string command_digest;  // of the job's command line
    Assignment assignment;       // the newest generation; an end or an allocation may have none
    bool met = false;            // whether the workers of any generation before had met (reach.h)
    int in_a_row = 0;            // of a crash loop: deaths of that cause without progress
    std::string last_cause;
    Blame blame;
    RestartRecord restart;
    TimeRecord time;
    OperatorLimits limits = {};

    bool makes_generation() const { return std::holds_alternative<MakesGeneration>(act); }
    bool takes_over() const { return std::holds_alternative<TakesOver>(act); }
    const Ending* end() const {  // null: the job goes on
        const auto* ends = std::get_if<EndsJob>(&act);
        return ends ? &ends->ending : nullptr;
    }
    const BeginsAllocation* allocation() const { return std::get_if<BeginsAllocation>(&act); }
    bool operator==(const LedgerEntry&) const = default;
};

// Whether the job goes on after that end: it stopped with work left, and Slurm has started it again
// since. `requeue` is the current SLURM_RESTART_COUNT.
inline bool continues(const LedgerEntry& last, int requeue) {
    const Ending* end = last.end();
    return end && last.requeue < requeue &&
           (end->verdict == Verdict::work_left || end->verdict == Verdict::user_signal);
}

}  // namespace ddprun::rendezvous
