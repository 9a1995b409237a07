// The state of the agent machine, shared by its source files only. Parts of the state are objects
// of agent/parts and rendezvous/rules, which alone change their data:
//   leader_search.cc  finding a leader, and leading
//   machine.cc        the link, the lease, stops
//   telling_workers.cc      what workers can read of each other
//   workers.cc        starting, watching and stopping the workers
#pragma once

#include <optional>

#include "agent/machine/events.h"
#include "agent/machine/machine_config.h"
#include "agent/parts/begun_again.h"
#include "agent/parts/headway.h"
#include "agent/parts/leader_link.h"
#include "agent/parts/node_workers.h"
#include "agent/parts/stop_ladder.h"
#include "agent/parts/stop_request.h"
#include "agent/parts/sweep_watch.h"
#include "agent/parts/withheld_failures.h"
#include "base/error.h"
#include "rendezvous/rules/generation_facts.h"
#include "rendezvous/rules/lease_member.h"

namespace ddprun::agent {

constexpr int kInterrupt = 2;                               // SIGINT
constexpr int kKill = 9;                                    // SIGKILL
constexpr auto kAskJobEndAgain = std::chrono::minutes{10};  // a limit may be changed

// The generation that runs, or is being stopped, on this node.
struct Running {
    explicit Running(const rendezvous::NodePlace& p)
        : place(p), workers(p.slots, p.rank_offset), headway(p.world_size) {}

    rendezvous::NodePlace place;
    NodeWorkers workers;
    Headway headway;  // moves on the node that has the store
    SweepWatch sweep;
    WithheldFailures withheld;
    PassedOn passed_on;               // to its workers
    bool said_not_finite = false;     // that a worker has reported a value that is no number
    std::int64_t snapshot_asked = 0;  // the newest request that was passed on
    bool planned_stop = false;        // by Stop: this node stays a member until all have stopped
    int named_signal = 0;  // of --requeue-signal, if that caused the stop; workers get another one
    std::vector<int> died_of;  // signals, one for each worker that a signal has ended
    std::optional<Time> stopping_since;
    std::optional<StopLadder> ladder;
    std::optional<StopHint> hint;      // for the workers, with the ladder's first signal
    std::vector<std::int64_t> unread;  // processes that nobody could read when they were examined
};

// The generation that ran here last: when this node learned of its end, when its last worker had
// ended, and when the keeper had verified that nothing is left.
struct Past {
    Generation generation = kNoGeneration;
    Time told{}, stopped{}, gone{};
};

struct MachineState {
    MachineState(MachineConfig c, Time now)
        : config(std::move(c)), link(config.node, now), ledger_found(config.leads) {}

    MachineConfig config;
    Phase phase = Phase::joining;
    LeaderLink link;
    rendezvous::LeaseMember lease;
    bool ledger_found;                 // the node that leads at the start has made the ledger
    rendezvous::Elsewhere yielded_to;  // the leader to which this node's own service has yielded
    std::uint64_t job = 0;  // in which the first entry was heard of; before: of the newest Welcome
    bool keeper_alive = true;
    std::optional<Running> running;
    rendezvous::GenerationFacts facts;  // of what runs here, or else of the newest it has heard of
    rendezvous::NodeId holder;          // the leader that holds, or held, that generation
    Past past;
    Duration stood_still{};  // this process, until the lease of what ran here last had passed
    BegunAgain begun_again;
    std::optional<rendezvous::Ending>
        ending;             // the node leaves with this once its workers are gone
    StopRequest request;    // of a stop
    Time tell_at = kNever;  // in a job of one node, which has no regular beats: when to send one
    Effects effects;

    // leader_search.cc: finding a leader, and leading
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

    // telling_workers.cc: what workers can read of each other
    void tell(Notice notice);
    void pass_on(const rendezvous::NewsItem& item);
    void on_news(const rendezvous::News& news);
    void on_lost(const WorkerLost& event);
    void tell_stopping(int signal, Duration grace);

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
    void say_signalled_by_slurm();
    void look_for_stuck(Time now);
    void on_cannot_kill(Time now, const CannotKill& event);
    void on_swept(Time now, const Swept& event);
    void cleared(Time now);
    void on_keeper_frozen(Time now);
    void on_keeper_died(Time now, const std::string& how);
    void on_warm_start_differs(Time now, const WarmStartDiffers& event);
    void on_no_keeper(const std::string& why);
    void on_progress(Time now, const WorkerProgress& event);
    void pass_on(Generation held, const rendezvous::SnapshotAsked& asked);
    void on_contact(Time now, const StoreContact& event);
    void got_to(Time now, rendezvous::Reach reach);
    void tell_soon(Time now);
    void on_examine(const rendezvous::Examine& examine);
    void on_examined(Time now, const WorkersExamined& event);
    void on_still(Time now, const WorkersStill& event);
    void on_in_collectives(Time now, const WorkersInCollectives& event);
    void say_not_finite(const WorkerProgress& event);
    rendezvous::Marks marks(Time now) const;
    rendezvous::WorkerOutcome outcome_of(const WorkerNotStarted& event) const;

    bool is_running(Generation generation) const {
        return running && running->place.generation == generation;
    }
    Time deadline() const { return lease.deadline(); }
    void send(rendezvous::ToLeader message) {
        if (link.is_welcomed()) effects.push_back(SendMessage{std::move(message)});
    }
    // Whether its leader has ended the generation since it hangs.
    bool has_hung() const { return facts.failure() && facts.failure().outcome().hung; }
    bool leads() const { return link.leader() && link.leader()->node == config.node; }
    bool may_lead() const { return config.may_lead && ledger_found; }
    void note(Note::Level level, std::string sentence) {
        effects.push_back(Note{level, std::move(sentence)});
    }
};

}  // namespace ddprun::agent
