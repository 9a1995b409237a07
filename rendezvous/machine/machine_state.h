// The insides of the rendezvous machine, shared by its sources and nobody else: machine.cc
// (sessions and what nodes say), leadership.cc (who leads: becoming active, taking over, yielding),
// hanging.cc (jobs that stand still, nodes that fail again and again), out_of_service.cc (nodes
// that Slurm does not bring back), generation.cc (from its entry to its end, and who is silent),
// evidence.cc (who may propose what follows), proposal.cc (what that is) and stopping.cc (the
// agreed stop).
#pragma once

#include <random>

#include "rendezvous/machine/machine.h"
#include "rendezvous/rules/blame.h"
#include "rendezvous/rules/first_cause.h"
#include "rendezvous/rules/hang.h"
#include "rendezvous/rules/late_joiner.h"
#include "rendezvous/rules/lease.h"
#include "rendezvous/rules/lease_member.h"
#include "rendezvous/rules/quorum.h"
#include "rendezvous/rules/rank_assignment.h"
#include "rendezvous/rules/restart_policy.h"
#include "rendezvous/rules/restart_times.h"
#include "rendezvous/rules/roster.h"
#include "rendezvous/rules/succession.h"

namespace ddprun::rendezvous {

inline constexpr auto kFirstWord =
    std::chrono::seconds{5};  // of gathering, until it is said who is missing

// The newest generation, if this leader made it or took it over. Stays after its end, for its lease
// says when the next may be proposed.
struct Held {
    EntryNumber entry = kNoEntry;
    Assignment assignment;
    Lease lease;
    bool over = false;
    bool taken_over = false;
    Time since{};                             // when the entry was ours
    std::map<NodeId, NodePlace> places = {};  // of its members
};

// No rank makes progress: the slowest are being looked at.
struct Hang {
    Time reported{};  // the newest progress
    Time until{};     // when it ends, whoever has not answered
    Slowest slowest;
    std::set<NodeId> asked;  // those that have not
    std::map<int, WorkerOutcome> seen;
};

struct Machine::State {
    State(MachineConfig c, Time now)
        : config(std::move(c)), random(config.seed), gathering_since(now) {}

    // ---- over all activations
    MachineConfig config;
    std::mt19937_64 random;
    Roster roster;              // its proofs; the rest is of this activation
    std::optional<Peer> heard;  // the leader that the own node has heard last
    Time heard_at = kLongAgo;
    Time unanswered_since = kNever;  // of the ledger: the first question that is still open
    Time yielded_at = kLongAgo;      // because of that

    // ---- of this activation
    Phase phase = Phase::dormant;
    Time active_since = kLongAgo;
    NodeId identity;
    Peer self;                       // where it is called
    std::string ledger_name;         // with which it leads
    std::uint64_t ledger_mark = 0;   // that nodes are to find; 0: they need not
    bool ledger_lasts = false;       // longer than this process
    std::uint64_t job = 0;           // that is led; 0: it is not told from others of its run id
    bool ledger_shared = true;       // every node so far has found it
    std::vector<NodeId> arrivals;    // nodes in the order in which they came first
    std::optional<LedgerEntry> top;  // newest entry read or written
    std::optional<Held> held;
    Time own_safe_after = kLongAgo;  // of the newest generation, if it was held here before another
    Generation over = kNoGeneration;  // the highest that has ended
    std::set<NodeId> complete;        // members of the newest all of whose workers have exited
    GenerationFacts facts;            // of the newest
    bool judged_failure = false;      // of the facts: a restart is decided
    // What nodes have said of a generation that this leader has not read of yet.
    std::map<NodeId, GenerationFacts> early;
    std::map<NodeId, std::int64_t> reports;  // of progress, by each node of the newest
    Time reported_at = kLongAgo;             // the newest of them
    std::optional<Hang> hang;
    RestartWatch restart_watch;
    std::pair<std::uint64_t, Time> made;  // the newest proposal of a generation: its random, when
    Blame blame;                          // as the newest entry has it
    std::string culprit;  // the node whose worker's failure, or hang, has ended the newest
    Time gathering_since;
    Time since_min = kNever;
    std::map<std::string, std::string> unusable;  // nodes that can run no worker, and why
    Time unusable_since = kNever;
    // Beats by which a node came back or became fit for a place: before so many more of them as are
    // missing nobody needs to be counted, which with ten thousand nodes would cost as much each
    // time.
    std::int64_t news = 0;
    std::int64_t all_back_at = 0, enough_at = 0;  // of `news`
    Time ledger_asked = kNever;                   // since when an answer of the ledger is awaited
    Time read_at = kLongAgo;                      // when it was read last
    Time retry_at = kLongAgo;                     // after a create that failed
    Time failing_since = kNever;  // since when no create has been answered but by "failed"
    std::string failing;          // the sentence that was said last
    Time next_inquiry = kNever;
    std::size_t inquiries = 0;
    std::map<NodeId, Peer> asked;  // by Inquire, since it gathers
    Time next_scan = kLongAgo, last_step = kLongAgo;
    std::optional<Peer> standby;
    Time wake = kNever;
    Time next_word = kNever;  // when to say again for whom we wait
    Time close_by = kNever;   // closed: until when absent members are waited for
    bool closed_said = false;
    std::map<std::string, std::string> out_of_service;  // as Slurm has said last, with the states
    Time ask_slurm_at = kNever;                         // next; kNever: never
    std::int64_t ack_number = 0;
    RestartHistory history;
    std::string next_cause = "start";
    std::optional<StopAsked> stop;    // a planned stop is under way
    Time stop_since{};                // when it was asked for
    bool requeueing = false;          // Slurm is being asked, and signals all for it
    Time late_since = kNever;         // since when somebody waits to be taken into what runs
    std::int64_t late_snapshot = -1;  // the newest snapshot of that time
    // They are looked for when one comes, at each snapshot and once in a while: with ten thousand
    // nodes, at each event would be too often.
    Time next_late_look = kLongAgo;
    std::int64_t late_look_snapshot = -1;
    std::optional<std::string> regrouping;  // what runs is being stopped for a larger world
    std::optional<Ending> ending;           // what the end will be, once it may be recorded
    Effects effects;

    // machine.cc: what nodes say
    void came(Time now, const Came& event);
    void on_hello(Session session, const Hello& hello);
    void on_join(Time now, Session session, const Join& join);
    void on_beat(Time now, Session session, const Beat& beat);
    void on_report(Time now, Session session, const Report& report);
    void on_facts(Time now, const NodeId& node, const Facts& said);
    void end_by_failure(Time now);
    void on_said_gone(Time now, Session session, const NodeId& node);
    // Who left in good order is not to blame.
    void on_gone(Time now, const NodeId& node, const std::string& why, bool to_blame = true);
    void on_unusable(Time now, Session session, const std::string& reason);
    void beat_in_held(Time now, NodeState& node, std::optional<Time> confirmed);
    void send_assigned(NodeState& node, const std::vector<Peer>& order, Time now);
    Told to_tell(const NodeState& node) const;
    bool owes_ack(Time now, const NodeState& node, const Beat& before) const;
    void send_ack(Time now, NodeState& node, bool with_facts = false);
    void ack_all(Time now);
    void refuse(Session session, std::string sentence);

    // leadership.cc: who leads
    void while_dormant(Time now, const Event& event);
    void activate(Time now, const Lead& lead);
    Standing standing() const;
    std::vector<Peer> order() const;
    std::string of_another_job(const NodeState& node) const;
    void judge_ledger(const NodeState& node, std::uint64_t mark);
    void tell_order(const NodeId& newcomer);
    std::optional<Peer> successor() const;
    void keep_standby();
    void adopt(Time now, const LedgerEntry& entry);
    void settle(Time now);
    void declare_over(Time now, const Interruption& why);
    void count_as_over(Time now, const std::string& cause);
    void complete_ending(Time now);
    void inquire(Time now);
    void on_called(Time now, const Called& called);
    void look_up_again(Time now);
    bool ledger_is_silent(Time now);
    void take_over(Time now);
    void yield(Time now, const Peer& to, Duration rest, const std::string& why);

    // hanging.cc: jobs that stand still, nodes that fail again and again
    void heard_progress(Time now, const NodeState& node);
    void watch_for_hang(Time now);
    void examine(Time now);
    void on_examined(const NodeId& node, const Report& report);
    void end_hung(Time now);
    std::string first_cause() const;
    Blame judged() const;
    void say_blamed();

    // out_of_service.cc: nodes that Slurm does not bring back
    Time first_question(Time now) const;
    std::vector<std::string> unheard(const std::vector<std::string>& missing) const;
    void ask_about(Time now, const std::vector<std::string>& missing);
    void on_out_of_service(Time now, const OutOfService& said);
    bool given_up(const NodeId& id) const;
    std::vector<std::string> given_up_of(const std::vector<std::string>& missing) const;

    // generation.cc: from its entry to its end, and between two
    void on_read(Time now, const LedgerRead& read);
    void on_unread(const LedgerUnread& unread);
    void on_created(Time now, const LedgerCreated& created);
    void ledger_failed(Time now, const std::string& sentence);
    void on_won(Time now);
    void forget_generation();
    void announce(Time now);
    void expire(Time now);
    void end_generation(Time now, const std::string& cause, Note::Level level);
    // By no failure. A node is lost; one that left on its own is not to blame.
    void interrupt(Time now, const Interruption& why, Note::Level level);
    void all_complete(Time now);
    void gather_anew(Time now);
    void lead(Time now);
    void scan(Time now);
    void follow(Time now);

    // evidence.cc: who may follow
    bool may_follow(Time now, bool& by_lease);
    bool is_back(const NodeState& node) const { return node.beat.floor >= newest() && node.idle(); }
    bool all_back();
    Time may_follow_at() const;
    bool ready(Time now, const NodeState& node) const;
    bool candidate(Time now, const NodeState& node) const;
    int count_candidates(Time now) const;
    std::vector<Candidate> candidates(Time now) const;
    std::vector<std::string> missing(const std::vector<Candidate>& here) const;
    Time members_awaited_until(Time now, bool by_lease) const;

    // stopping.cc: the agreed stop
    void on_stop_asked(Time now, Session session, const StopAsked& asked);
    void begin_stop(Time now, const StopAsked& asked, const std::string& sentence);
    void resume_stop(Time now, const Stop& told);
    void withdraw_requeue(const StopAsked& asked);
    // What a member is told while a stop, or a pause for a larger world, is under way.
    std::optional<Stop> stop_now(Time now) const;
    void stop_all(Time now);
    bool may_be_stop(Time now);
    void on_requeued(Time now);

    // proposal.cc: what follows
    std::vector<Absent> absent_members() const;
    void judge_silence(Time now);
    bool is_explained();
    void decide_failure();
    bool too_few_are_usable(Time now);
    void gather(Time now, bool by_lease);
    void say_waiting(Time now, const std::string& sentence);
    void propose(Time now, LedgerEntry entry);
    void propose_generation(Time now, const std::vector<Candidate>& here);
    int most_nodes() const;
    void propose_end(Time now);
    void consider_late_joiners(Time now);
    void close(Time now);
    void tell_end(NodeState& node);
    void closed(Time now);

    bool holding() const { return held && !held->over; }
    // The leader's own node is the job: nobody else could train, so there is no lease.
    bool single() const { return config.limits.max_nodes == 1 && !config.outside; }
    Generation newest() const { return top ? top->assignment.generation : kNoGeneration; }
    bool is_member(const NodeId& node) const { return top && top->assignment.find(node); }
    Duration lease() const { return config.limits.times.lease; }
    Duration beat_period() const { return share(lease(), LeaseMember::kBeatPeriod); }
    void note(Note::Level level, std::string sentence) {
        effects.push_back(Note{level, std::move(sentence)});
    }
    void send(Session session, ToNode message) {
        effects.push_back(Send{session, std::move(message)});
    }
    void wake_at(Time when) { wake = std::min(wake, when); }
    void ask_ledger(Time now, Effect effect) {
        if (ledger_asked == kNever) ledger_asked = now;
        effects.push_back(std::move(effect));
    }
};

inline Ending unavailable(std::string sentence) {
    return {.verdict = Verdict::unavailable,
            .code = 69,
            .sentence = std::move(sentence),
            .first_failure = {},
            .first_failure_node = {},
            .consequences = 0};
}

}  // namespace ddprun::rendezvous
