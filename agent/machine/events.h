// All inputs (Event) and outputs (Effect) of the agent machine, as plain values. The runner turns
// what happens into events, and performs the effects in the given order.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "agent/parts/notices.h"
#include "agent/parts/snapshot_hint.h"
#include "agent/parts/stop_policy.h"
#include "base/note.h"
#include "rendezvous/model/messages.h"

namespace ddprun::agent {

// ---- events

struct Started {};  // first event: begin to look for the rendezvous
// The link to a leader is connected and has answered our Hello; the answer follows as a message.
// `local_address` is the one from which we reached it: what a node offers that was not told
// otherwise.
struct LinkUp {
    std::string local_address;
};
// The link ended, or it could not be made before its deadline.
struct LinkLost {
    std::string sentence;
};
struct MessageCame {
    rendezvous::ToNode message;
};
// Answers to Spawn, one for each worker. Here and below `local_rank` counts the workers of this
// ddprun; what leaves the machine counts those of the host (HostPlace).
struct WorkerStarted {
    Generation generation;
    int local_rank = 0;
    std::int64_t pid = 0;
};
struct WorkerNotStarted {
    Generation generation;
    int local_rank = 0;
    std::string sentence;  // "cannot execute ./train: Permission denied"
    int exit_code = 126;   // 127 where the program was not found, as a shell says it
};
// A worker has failed; WorkerExited follows when its account of that has been read.
struct WorkerLost {
    Generation generation;
    int local_rank = 0;
    int exit_code = 0, signal = 0;
    Time at{};  // when the keeper reaped it
};
struct WorkerExited {
    Generation generation;
    rendezvous::WorkerOutcome outcome;  // sentence, error and tail filled in; age is 0
    Time at{};                          // when the keeper reaped it
};
struct Swept {  // the keeper has verified: nothing of that generation is left
    Generation generation;
};
// The answer to LookForStuck, if something is left: it hangs in the kernel.
struct CannotKill {
    Generation generation;
    std::string sentence;
};
// The keeper does not answer; it is now killed with the workers.
struct KeeperFrozen {};
// It is gone, and what it left has been killed. A new one is being started.
struct KeeperDied {
    std::string how = "has died";  // follows its name
};
struct KeeperBack {};
// Or no new one can be started.
struct NoKeeper {
    std::string why;
};
struct WorkerProgress {
    Generation generation;
    std::int64_t step = -1;
    std::int64_t snapshot = -1;
    int local_rank = 0;
    Duration snapshot_took{};      // to save one; 0: not told
    std::string not_finite = {};   // "loss=nan"; empty: all that it told are numbers
    Duration saving{};             // what its snapshots have taken from training so far
    std::int64_t first_step = -1;  // that it has told since the report before; `step` is the newest
};
// The answer to ExamineWorkers: each with what it prints last and where it is; and which calls of
// collectives all workers of this node have recorded, if they record any.
struct WorkersExamined {
    Generation generation;
    std::vector<rendezvous::WorkerOutcome> outcomes;
    std::vector<rendezvous::RecordedCalls> recorded = {};
    // Processes of Python whose functions could not be read.
    std::vector<std::int64_t> unread = {};
};
// A worker that was forked from a server has found that a cold start would not be like it
// (warm). It has ended.
struct WarmStartDiffers {
    Generation generation;
    int local_rank = 0;
    std::string why;
    Time at{};
};
// All workers of this node stand still, or no longer do: then the list is empty.
struct WorkersStill {
    Generation generation;
    std::vector<rendezvous::Still> still;
    rendezvous::Pace pace = {};  // while they do not
};
// All workers of this node that live are in collectives, and have been for a moment. Told once a
// second.
struct WorkersInCollectives {
    Generation generation;
};
// Workers are in contact with this generation's store. Only seen on the node that has it.
struct StoreContact {
    Generation generation;
    int processes = 1;  // so many by now
};
// Before each Welcome: whether this node reads the ledger that the leader has named, by its mark.
struct LedgerFound {
    bool found = false;
};
struct SignalCame {
    int signal = 0;
};
// The answer to AskJobEnd, where Slurm gave one; none: it knows no end.
struct JobEndKnown {
    std::optional<Time> end;
};
struct Tick {};

using Event =
    std::variant<Started, LinkUp, LinkLost, MessageCame, WorkerStarted, WorkerNotStarted,
                 WorkerLost, WorkerExited, Swept, CannotKill, KeeperFrozen, KeeperDied, KeeperBack,
                 NoKeeper, WorkerProgress, WarmStartDiffers, WorkersExamined, WorkersStill,
                 WorkersInCollectives, StoreContact, LedgerFound, SignalCame, JobEndKnown, Tick>;

// ---- effects

// Connect to the leader. `hello` is the first message on each connection that is tried, so that a
// stranger on the port is passed over; the machine sends no Hello itself. Answered by LinkUp, or by
// LinkLost when `deadline` has passed. It closes an older connection.
struct Connect {
    Time deadline;
    rendezvous::Hello hello;
    std::string address;  // whom to call; empty: the endpoint
    std::uint16_t port = 0;
    bool once = false;  // LinkLost as soon as that one has refused; else again and again
    bool self = false;  // this node leads: to its own service
    bool operator==(const Connect&) const = default;
};
// This node's own turn has come: its service leads from now on. It comes before the Connect to that
// service.
struct Lead {
    rendezvous::Peer self;
    bool operator==(const Lead&) const = default;
};
// An Ack came from a leader elsewhere. The dormant service of this node sends callers there. An
// empty peer: that leader is lost.
struct LeaderHeard {
    rendezvous::Peer leader;
    bool operator==(const LeaderHeard&) const = default;
};
struct SendMessage {
    rendezvous::ToLeader message;
    bool operator==(const SendMessage&) const = default;
};
// Tell the keeper until when the workers may run; comes before the Spawn it guards. kNever: no
// deadline.
struct SetDeadline {
    Time deadline;
    bool operator==(const SetDeadline&) const = default;
};
// Start the store of this generation on our listening socket (only on the node with rank 0), before
// Spawn.
struct OpenStore {
    rendezvous::NodePlace place;
    bool operator==(const OpenStore&) const = default;
};
// Start all workers of this node.
struct Spawn {
    rendezvous::NodePlace place;
    std::uint64_t job = 0;  // the leader's number of the job (Welcome::job)
    bool operator==(const Spawn&) const = default;
};
// To the process groups of all workers that live. With a hint they find the file that
// DDPRUN_STOP_FILE names before the signal reaches them.
struct SignalWorkers {
    int signal = 0;
    std::optional<StopHint> hint = {};
    bool stops = true;  // false: somebody else's signal, which is only passed on
    // These get SIGABRT in its place, so that they write their functions before they die.
    std::vector<std::int64_t> abort = {};
    bool operator==(const SignalWorkers&) const = default;
};
// The workers go on, and find the file that DDPRUN_SNAPSHOT_FILE names.
struct AskSnapshot {
    SnapshotHint hint;
    bool operator==(const AskSnapshot&) const = default;
};
// For the workers that read it: their events, and the worker store where it is on this node.
struct TellWorkers {
    Generation generation;
    Notice notice;
    bool operator==(const TellWorkers&) const = default;
};
// The job makes no progress: keep what all workers do, and find out where these are while they
// live. Answered by WorkersExamined, unless the generation ends before.
struct ExamineWorkers {
    Generation generation;
    std::vector<int> local_ranks;
    bool operator==(const ExamineWorkers&) const = default;
};
// When does Slurm end this job? Answered by JobEndKnown.
struct AskJobEnd {
    bool operator==(const AskJobEnd&) const = default;
};
// Kill whatever is left of this generation, descendants too; answered by Swept.
struct Sweep {
    Generation generation;
    bool met = false;  // all workers of the job had met
    bool operator==(const Sweep&) const = default;
};
// The workers have succeeded, and Sweep waits for what they have left running. It now has only this
// time from SIGTERM to SIGKILL.
struct HurrySweep {
    Duration grace{};
    bool operator==(const HurrySweep&) const = default;
};
// The sweep takes longer than killing can take: what is left, and where does it hang? Answered by
// CannotKill, or not at all if nothing is left.
struct LookForStuck {
    Generation generation;
    Duration since{};  // the sweep began
    bool operator==(const LookForStuck&) const = default;
};
// The generation's store, if it is on this node, is not needed any more. The end of this node's own
// workers is not enough: workers of other nodes may still use the store.
struct CloseStore {
    bool operator==(const CloseStore&) const = default;
};
// Send what is queued, then exit with this result.
struct Exit {
    rendezvous::Ending ending;
    bool operator==(const Exit&) const = default;
};

using Effect = std::variant<Connect, Lead, LeaderHeard, SendMessage, SetDeadline, OpenStore, Spawn,
                            SignalWorkers, AskSnapshot, TellWorkers, ExamineWorkers, AskJobEnd,
                            Sweep, HurrySweep, LookForStuck, CloseStore, Exit, Note>;
using Effects = std::vector<Effect>;

}  // namespace ddprun::agent
