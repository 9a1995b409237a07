// The insides of the agent machine, shared by its sources and nobody else: calls.cc (finding a
// leader), machine.cc (what it says, and the lease) and workers.cc (starting, watching and stopping
// the workers).
#pragma once

#include <map>
#include <optional>
#include <set>

#include "agent/machine/machine.h"
#include "agent/machine/stop_ladder.h"
#include "base/error.h"
#include "rendezvous/rules/generation_facts.h"
#include "rendezvous/rules/lease_member.h"
#include "rendezvous/rules/succession.h"

namespace ddprun::agent {

constexpr int kInterrupt = 2;                               // SIGINT
constexpr int kKill = 9;                                    // SIGKILL
constexpr auto kAskJobEndAgain = std::chrono::minutes{10};  // a limit may be changed

// What is known of a worker beside how it ended.
struct WorkerState {
    std::int64_t step = -1;  // newest reported
    bool ended = false;
};

// What is running, or being stopped, on this node.
struct Running {
    rendezvous::NodePlace place;
    std::vector<WorkerState> workers;  // by local rank
    int exited = 0;                    // of them that have ended, or could not be started
    bool sweeping = false;             // the keeper was asked to clear all away
    Time sweeping_since{};
    Time look_at = kNever;      // when to look who lives on nevertheless
    std::string stuck;          // who does: this node will never run anything again
    bool planned_stop = false;  // by Stop: this node stays a member until all have stopped
    std::optional<Time> stopping_since;
    std::optional<StopLadder> ladder;
    std::optional<StopHint> hint;  // for the workers, with the ladder's first signal
    // Failures that may turn out to be of a stop of Slurm's, not yet told: until then.
    std::vector<std::pair<rendezvous::WorkerOutcome, Time>> withheld;
    Time withheld_until = kNever;
    std::int64_t step = -1;
    std::int64_t reports = 0;  // of progress
    Time reported_at{};        // the newest
    int started = 0;           // workers
    Time all_started = kNever, first_contact = kNever, first_report = kNever, all_ended = kNever;
    int contacts = 0;  // connections to the store, on the node with rank 0
    Time all_in_contact = kNever;
};

inline rendezvous::Ending unavailable(std::string sentence) {
    return {.verdict = rendezvous::Verdict::unavailable,
            .code = 69,
            .sentence = std::move(sentence),
            .first_failure = {},
            .first_failure_node = {},
            .consequences = 0};
}

// The generation that was run here last: when this node knew of its end, when its last worker had
// ended, and when the keeper had verified it.
struct Past {
    Generation generation = kNoGeneration;
    Time told{}, stopped{}, gone{};
};

struct Machine::State {
    State(MachineConfig c, Time now)
        : config(std::move(c)), lost_since(now), caller(config.node), ledger_found(config.leads) {}

    MachineConfig config;
    Phase phase = Phase::joining;
    rendezvous::LeaseMember lease;
    bool welcomed = false, was_welcomed = false;
    bool refused = false;   // nobody is called any more
    std::uint64_t job = 0;  // in which the first entry was heard of; before: of the newest Welcome
    bool keeper_alive = true;
    Time lost_since;  // since when there is no leader
    rendezvous::Caller caller;
    std::optional<rendezvous::Caller::Call> call;  // the leader is lost; whom we call now
    Time call_at = kNever;                         // we wait before that call
    bool ledger_found;                             // who leads at the start has made it
    std::optional<Running> running;
    rendezvous::GenerationFacts facts;  // of what runs here, or else of the newest it has heard of
    rendezvous::NodeId holder;          // the leader that holds, or held, that generation
    Past past;
    std::optional<rendezvous::Ending> ending;    // we leave with this once our workers are gone
    std::optional<rendezvous::StopAsked> asked;  // a stop that the leader was told of
    Time signal_answer_by = kNever;              // of one by a signal
    Duration snapshot_took{};                    // the newest that was told, of any worker here
    Time ask_job_end_at = kNever;
    Time tell_at = kNever;  // in a job of one node, which has no regular beats: when to send one
    Effects effects;

    // calls.cc: finding a leader, and leading
    void connect(Time now);
    void link_lost(Time now, const std::string& sentence);
    void link_up(const LinkUp& up);
    void search(Time now);
    void place_call(Time now);
    void on_elsewhere(Time now, const rendezvous::Elsewhere& elsewhere);
    void on_refused(Time now, const rendezvous::Refused& said);
    void heard_leader();
    void on_ledger_found(bool found);
    void check_link(Time now);
    Duration patience() const;

    // machine.cc: the link and the lease
    void on_message(Time now, const rendezvous::ToNode& message);
    void on_welcome(Time now, const rendezvous::Welcome& welcome);
    void on_ack(Time now, const rendezvous::Ack& ack);
    void on_facts(Time now, const rendezvous::Facts& said);
    void on_assigned(Time now, const rendezvous::Assigned& assigned);
    void on_stop(Time now, const rendezvous::Stop& stop);
    void on_signal(Time now, int signal);
    void ask_stop(Time now, rendezvous::StopAsked stop);
    void tell_stop(Time now);
    void watch_job_end(Time now);
    Time stop_due() const;
    void on_job_end(Time now, std::optional<Time> end);
    void pass_on(int signal);
    void kill_now(Time now);
    void expire(Time now);
    void on_tick(Time now);
    rendezvous::Beat next_beat(Time now);
    rendezvous::Join next_join(Time now);
    void beat(Time now);
    Time next_deadline() const;
    void leave(Time now, rendezvous::Ending ending);

    // workers.cc: the workers of this node
    void start_workers(Time now, const rendezvous::Assigned& assigned, Time deadline);
    void on_exited(Time now, const WorkerExited& event);
    void on_started(Time now, const WorkerStarted& event);
    void on_not_started(Time now, const WorkerNotStarted& event);
    void worker_ended(Time now, rendezvous::WorkerOutcome outcome, Time at);
    void take_failure(Time now, rendezvous::WorkerOutcome outcome, Time at);
    void judge_withheld(Time now);
    void begin_stop(Time now, int signal, Duration grace);
    void climb(Time now);
    void sweep(Time now);
    void look_for_stuck(Time now);
    void on_cannot_kill(Time now, const CannotKill& event);
    void on_swept(Time now, const Swept& event);
    void cleared(Time now);
    void on_keeper_died(Time now);
    void on_progress(Time now, const WorkerProgress& event);
    void on_contact(Time now, const StoreContact& event);
    void made_progress(Time now);
    void tell_soon(Time now);
    WorkerState& worker(int local_rank);
    void on_examine(const rendezvous::Examine& examine);
    void on_examined(const WorkersExamined& event);
    std::vector<rendezvous::RankStep> slowest() const;
    rendezvous::Marks marks(Time now) const;
    rendezvous::WorkerOutcome outcome_of(const WorkerNotStarted& event) const;

    bool is_running(Generation generation) const {
        return running && running->place.generation == generation;
    }
    Time deadline() const { return lease.deadline(); }
    void send(rendezvous::ToLeader message) {
        if (welcomed) effects.push_back(SendMessage{std::move(message)});
    }
    bool leads() const { return caller.leader() && caller.leader()->node == config.node; }
    bool may_lead() const { return config.may_lead && ledger_found; }
    void note(Note::Level level, std::string sentence) {
        effects.push_back(Note{level, std::move(sentence)});
    }
};

}  // namespace ddprun::agent
