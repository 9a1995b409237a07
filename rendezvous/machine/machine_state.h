// The state of the rendezvous machine, shared by its source files only. Each part of the state is
// an object of rendezvous/parts, which alone changes its data. The source files pass events to the
// parts and turn their decisions into effects:
//   node_messages.cc  connections and the messages of nodes
//   leadership.cc     which node leads: becoming active, taking over, yielding
//   ledger_answers.cc answers of the ledger, and what to do while it does not answer
//   generation.cc     a generation, from its entry to its end
//   previous_is_over.cc     when the next entry may be proposed, and which nodes can be members
//   missing_nodes.cc  absent nodes, and what Slurm knows about them
//   proposal.cc       what follows a generation: a restart, a wait, the next generation
//   job_end.cc        the end of the job
//   hanging.cc        generations that make no progress
//   standing_still.cc who waits for whom when all workers stand still
//   stopping.cc       planned stops
//   operating.cc      what operators ask for
//   asking_snapshot.cc      a snapshot that operators ask for, and a stop after it
//   status.cc         how the job stands, for operators
//   allocations.cc    a requeue: what an earlier or a newer allocation of the job means here
#pragma once

#include <random>
#include <set>
#include <string>

#include "rendezvous/hangs/hang_watch.h"
#include "rendezvous/hangs/standstill_watch.h"
#include "rendezvous/hangs/straggler_watch.h"
#include "rendezvous/machine/machine_config.h"
#include "rendezvous/model/durations.h"
#include "rendezvous/model/events.h"
#include "rendezvous/model/job_status.h"
#include "rendezvous/parts/agreed_stop.h"
#include "rendezvous/parts/allocation_start.h"
#include "rendezvous/parts/allocation_watch.h"
#include "rendezvous/parts/claim.h"
#include "rendezvous/parts/gathering.h"
#include "rendezvous/parts/generation_news.h"
#include "rendezvous/parts/heard_leader.h"
#include "rendezvous/parts/inquiries.h"
#include "rendezvous/parts/job_end.h"
#include "rendezvous/parts/job_record.h"
#include "rendezvous/parts/late_join_watch.h"
#include "rendezvous/parts/leaving_nodes.h"
#include "rendezvous/parts/ledger_patience.h"
#include "rendezvous/parts/out_of_service.h"
#include "rendezvous/parts/output.h"
#include "rendezvous/parts/quiet_watch.h"
#include "rendezvous/parts/snapshot_request.h"
#include "rendezvous/parts/successors.h"
#include "rendezvous/parts/unusable_nodes.h"
#include "rendezvous/rules/first_cause.h"
#include "rendezvous/rules/lease_member.h"
#include "rendezvous/rules/quorum.h"
#include "rendezvous/rules/rank_assignment.h"

namespace ddprun::rendezvous {

// One period of leading: from the moment this node's turn comes until it yields.
struct Activation {
    std::mt19937_64 random;
    Time since = kLongAgo;
    NodeId identity;                // the leader's identity, new each time
    Peer self;                      // where other nodes reach it
    std::string ledger_name;        // the ledger that it leads with
    std::uint64_t ledger_mark = 0;  // nodes must find it; 0: they need not
    bool ledger_lasts = false;      // the ledger outlives this process
    // Identifies the job; 0: not distinguished from others of its run id.
    std::uint64_t job = 0;
};

struct MachineState {
    MachineState(MachineConfig c, Time now)
        : config(std::move(c)),
          began(now),
          record(config.to_day, now, config.limits),
          gathering(now) {
        active.random.seed(config.seed);
    }

    // ---- over all activations
    MachineConfig config;
    Time began;     // with the process of its node
    Roster roster;  // only its proofs; the rest is of this activation
    HeardLeader heard;
    LedgerPatience ledger;
    bool said_unjudged = false;  // that --hang-timeout cannot judge a program without reports

    // ---- of this activation
    Phase phase = Phase::dormant;
    Activation active;
    Successors successors;
    Inquiries inquiries;
    Claim claim;            // to the newest generation
    GenerationFacts facts;  // of the newest generation
    EarlyFacts early;       // of generations that come after it
    GenerationNews news;    // for the workers of the newest generation
    JobRecord record;
    HangWatch hang;
    StandstillWatch standstill;
    bool told_what_now = false;  // once for each job, after the first line about a standstill
    StragglerWatch straggler;
    QuietWatch quiet{config.status_every};
    LateJoinWatch late;
    AgreedStop stop;
    SnapshotRequest snapshot;
    Gathering gathering;
    OutOfServiceNodes out_of_service;
    UnusableNodes unusable;
    LeavingNodes leaving;
    UnusableNodes other_version;     // of the order; they have never been members
    std::set<std::string> refusals;  // that have been said
    AllocationStart allocation;
    AllocationWatch watch;
    // An entry of this leader stands, but nobody knows since when.
    std::optional<LedgerEntry> unverified;
    JobEnd end;
    Output out;
    Time due = kNever;  // when this step was to come at the latest, as the one before it has said

    // node_messages.cc: connections and the messages of nodes
    void came(Time now, const Came& event);
    void on_hello(Time now, Session session, const Hello& hello);
    void on_join(Time now, Session session, const Join& join);
    void on_beat(Time now, Session session, const Beat& beat);
    void on_report(Time now, Session session, const Report& report);
    void on_facts(Time now, const NodeId& node, const Facts& said);
    void end_by_failure(Time now);
    void on_said_gone(Time now, Session session, const NodeId& node);
    // A node that left in good order gets no blame.
    void on_gone(Time now, const NodeId& node, const std::string& why, bool to_blame = true);
    void on_unusable(Time now, Session session, const std::string& reason);
    void beat_in_held(Time now, NodeState& node, std::optional<Time> confirmed);
    void send_assigned(NodeState& node, const std::vector<Peer>& order, Time now);
    Told to_tell(const NodeState& node) const;
    bool owes_ack(Time now, const NodeState& node, const Beat& before) const;
    void send_ack(Time now, NodeState& node, bool with_facts = false);
    void ack_all(Time now);
    void scan(Time now);
    void refuse(Session session, std::string sentence, bool for_good = false);
    void refuse_version(Time now, Session session, const Hello& hello);
    std::string of_another_job(const NodeState& node) const;

    // leadership.cc: who leads
    void while_dormant(Time now, const Event& event);
    void activate(Time now, const Lead& lead);
    void lead(Time now);
    Standing standing() const;
    std::vector<Peer> order() const;
    std::vector<Peer> seniority() const;
    std::vector<Peer> rivals() const;
    Time rivals_answer_by(std::size_t here) const;
    void on_rival(Time now, const Called& called, const Peer& at);
    void judge_ledger(const NodeState& node, std::uint64_t mark);
    void tell_order(const NodeId& newcomer);
    void keep_standby();
    void adopt(Time now, const LedgerEntry& entry);
    void settle(Time now);
    void inquire(Time now);
    void on_called(Time now, const Called& called);
    void take_over(Time now);
    void yield(Time now, const Peer& to, Duration rest, const std::string& why);

    // ledger_answers.cc: what the ledger answers
    void ask_ledger(Time now, Effect effect);
    void on_read(Time now, const LedgerRead& read);
    void on_unread(const LedgerUnread& unread);
    void on_created(Time now, const LedgerCreated& created);
    void own_entry_stands(Time now, const LedgerEntry& entry);
    void ledger_failed(Time now, const std::string& sentence);
    void look_up_again(Time now);
    bool ledger_is_silent(Time now);

    // generation.cc: from its entry to its end
    void on_won(Time now);
    void forget_generation();
    void announce(Time now);
    void expire(Time now);
    // Ends the held generation by something other than a worker's failure.
    void interrupt(Time now, const Interruption& why, Note::Level level,
                   RestartCause kind = RestartCause::node);
    void end_generation(Time now, const std::string& cause, Note::Level level,
                        RestartCause kind = RestartCause::node);
    // Ends a generation that this leader does not hold.
    void declare_over(Time now, const Interruption& why);
    void count_as_over(Time now, const std::string& cause);
    void note_losses();
    void all_complete(Time now);
    void consider_late_joiners(Time now);

    // previous_is_over.cc: who may follow
    bool may_follow(Time now, bool& by_lease);
    bool is_back(const NodeState& node) const { return node.beat.floor >= newest() && node.idle(); }
    bool all_back();
    bool ready(Time now, const NodeState& node) const;
    bool candidate(Time now, const NodeState& node) const;
    int count_candidates(Time now) const;
    std::vector<Candidate> candidates(Time now) const;
    Time members_awaited_until(Time now, bool by_lease) const;

    // missing_nodes.cc: nodes that are absent
    void gather_anew(Time now);
    std::vector<std::string> missing(const std::vector<Candidate>& here) const;
    std::vector<std::string> unheard(const std::vector<std::string>& missing) const;
    void ask_about(Time now, const std::vector<std::string>& missing);
    void on_out_of_service(Time now, const OutOfService& said);
    bool given_up(const NodeId& id) const;
    std::vector<Absent> absent_members() const;
    void judge_silence(Time now);

    // proposal.cc: what follows
    void follow(Time now);
    bool is_explained();
    void decide_failure();
    void gather(Time now, bool by_lease);
    void say_waiting(Time now, const std::string& sentence);
    void propose(Time now, LedgerEntry entry);
    void propose_generation(Time now, const std::vector<Candidate>& here);
    int most_nodes() const;
    Blame blame() const;
    std::string suspension() const;

    // job_end.cc: the end of the job
    bool is_refused(Time now);
    bool too_few_are_usable(Time now);
    bool waits_to_tell(Time now, Time since);
    void propose_end(Time now);
    void on_requeued(Time now);
    void close(Time now);
    void say_end(Time now);
    void say_times(Time now);
    void tell_end(NodeState& node);
    void closed(Time now);

    // hanging.cc: generations that make no progress
    void watch_for_hang(Time now);
    bool all_workers_have_ended() const;
    void miss_reports(Time now);
    void examine(Time now);
    void end_hung(Time now);

    // standing_still.cc: who waits for whom
    void watch_for_standstill(Time now);
    void watch_for_straggler(Time now);
    bool standing_is_hang(Time now) const;
    std::optional<std::vector<RankStill>> look_at_members();
    void ask_where(Time now);
    void ask_members(const std::map<NodeId, std::vector<int>>& ranks);
    void end_standing(Time now, const std::string& line);
    const Member* member_of(int rank) const;
    std::string name_of(int rank) const;

    // stopping.cc: the agreed stop
    void on_stop_asked(Time now, Session session, const StopAsked& said);
    std::string why_needed(const NodeId& node) const;
    void regroup(Time now, StopCause cause, const std::string& sentence);
    void let_go(Time now);
    bool the_others_run() const;
    void begin_stop(Time now, StopAsked asked, const std::string& reason);
    void note_stop(const std::string& sentence);
    std::string why_it_ends() const;
    void resume_stop(Time now, const Stop& told);
    void withdraw_requeue(const StopAsked& asked);
    // The Stop that members get while a planned stop is under way.
    std::optional<Stop> stop_now(Time now) const;
    void stop_all(Time now);
    bool may_be_stop(Time now);

    // operating.cc: what operators ask for
    void on_operated(Time now, const Operated& asked);
    Answered stop_for(Time now, const std::string& by);
    std::optional<Time> kills_at() const;
    std::string time_to_kill(Time now) const;
    Answered restart_for(Time now, const std::string& by, Generation generation);
    Answered drain_for(Time now, const std::string& by, const std::string& node);
    Answered limits_for(Time now, const std::string& by, const OperatorLimits& asked);
    void limits_have_changed();
    void hear_limits();
    bool is_ending() const {
        return phase == Phase::ending || phase == Phase::closed || stop.is_asked() ||
               end.is_decided();
    }
    std::string why_not_now() const;
    int nodes_without(const std::string& host) const;
    bool is_known(const std::string& host) const;
    std::string parked(const NodeId& node) const;
    const NodeState* has_its_rank(const NodeState& spare) const;
    std::string one_rank(const NodeState& spare, const NodeState& member) const;

    // asking_snapshot.cc: a snapshot that operators ask for
    Answered stop_after_snapshot_for(Time now, const std::string& by);
    Answered snapshot_for(Time now, const std::string& by);
    void look_for_snapshot(Time now);
    std::string snapshot_asked() const;

    // status.cc: how the job stands
    void break_silence(Time now);
    std::string status_line(Time now);
    JobStatus status(Time now) const;
    std::vector<NodeStatus> node_states() const;
    NodeStatus state_of(const std::string& name, const NodeState* node) const;
    std::string waiting_for(Time now, const std::vector<NodeStatus>& nodes) const;
    Duration day(Time when) const { return config.to_day + when.time_since_epoch(); }

    // allocations.cc: earlier and newer allocations of the job
    bool begins_allocation() const;
    bool earlier_may_train() const;
    bool may_begin(Time now) const;
    bool owes_allocation(Time now);
    bool single_without_past() const;
    void propose_allocation(Time now);
    void allocation_recorded(Time now);
    void await_earlier(Time now);
    bool watches_allocations() const;
    bool may_grant(Time now) const;
    void look_for_newer(Time now);
    void look(std::int64_t number);
    void on_looked(Time now, const LedgerLooked& looked);
    void unverified_failed(Time now, std::int64_t number);
    void superseded(Time now, int newest);

    // ---- short words
    const std::optional<LedgerEntry>& top() const { return claim.top(); }
    const Held* held() const { return claim.held(); }
    bool holding() const { return claim.holding(); }
    Generation newest() const { return claim.newest(); }
    bool any_generation() const { return newest() != kNoGeneration; }
    bool is_member(const NodeId& node) const { return claim.is_member(node); }
    // What decides: an operator may have set other limits than those of the command line.
    const Limits& limits() const { return record.limits(); }
    // A job of one node inside ddprun, by its command line. No other node could train, so there is
    // no lease.
    bool single() const { return config.limits.max_nodes == 1 && !config.outside; }
    Duration lease() const { return limits().times.lease; }
    Duration beat_period() const { return share(lease(), kBeatPeriod); }
    void note(Note::Level level, std::string sentence) { out.note(level, std::move(sentence)); }
    void send(Session session, ToNode message) { out.send(session, std::move(message)); }
    void wake_at(Time when) { out.wake_at(when); }
};

}  // namespace ddprun::rendezvous
