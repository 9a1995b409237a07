// The insides of the rendezvous machine, shared by its three sources and nobody else: machine.cc
// (sessions and what nodes say), generation.cc (when a generation ends and who may propose what
// follows) and proposal.cc (what that is).
#pragma once

#include <random>

#include "rendezvous/lease.h"
#include "rendezvous/machine.h"
#include "rendezvous/quorum.h"
#include "rendezvous/rank_assignment.h"
#include "rendezvous/restart_policy.h"
#include "rendezvous/roster.h"

namespace ddprun::rendezvous {

inline constexpr auto kFirstWord =
    std::chrono::seconds{5};  // of gathering, until it is said who is missing

// The newest generation, if this leader made it. Stays after its end, for its lease says when the
// next may be proposed.
struct Held {
    EntryNumber entry = kNoEntry;
    Assignment assignment;
    Lease lease;
    bool over = false;
    bool progressed = false;
    std::set<NodeId> complete;  // members all of whose workers have exited
};

// The first failure of a generation: the earliest in time, whoever reported first.
struct Failure {
    WorkerOutcome outcome;
    std::string node;
    Time at = kNever;
    int others = 0;  // failed after it, as a consequence
};

struct Machine::State {
    State(MachineConfig c, Time now)
        : config(std::move(c)), random(config.seed), gathering_since(now) {}

    MachineConfig config;
    std::mt19937_64 random;
    Phase phase = Phase::reading;
    Roster roster;
    std::set<Session> strangers;     // connected, no Hello yet or refused
    std::optional<LedgerEntry> top;  // newest entry read or written
    std::optional<Held> held;
    Generation over = kNoGeneration;  // the highest that has ended
    Time gathering_since;
    Time since_min = kNever;
    Time retry_at = kLongAgo;     // after a create that failed
    Time failing_since = kNever;  // since when no create has been answered but by "failed"
    Time wake = kNever;
    Time next_word = kNever;  // when to say again for whom we wait
    Time close_by = kNever;   // closed: until when absent members are waited for
    bool closed_said = false;
    std::int64_t ack_number = 0;
    RestartHistory history;
    std::string next_cause = "start";
    std::optional<Failure> failure;  // of the generation that has ended last, not yet decided
    std::optional<StopAsked> stop;   // a planned stop is under way
    std::optional<Ending> ending;    // what the end will be, once it may be recorded
    Effects effects;

    // machine.cc: what nodes say
    void came(Time now, const Came& event);
    void on_hello(Session session, const Hello& hello);
    void on_join(Time now, Session session, const Join& join);
    void on_beat(Time now, Session session, const Beat& beat);
    void on_report(Time now, Session session, const Report& report);
    void on_stop_asked(Session session, const StopAsked& asked);
    void on_gone(Time now, const NodeId& node, const std::string& why);
    void beat_in_held(Time now, NodeState& node, std::optional<Time> confirmed);
    void note_failure(Time now, const NodeState& node, const WorkerOutcome& outcome);
    void send_assigned(NodeState& node, Time now);
    void send_ack(Time now, NodeState& node);
    void ack_all(Time now);
    void refuse(Session session, std::string sentence);

    // generation.cc: what is decided
    void on_read(Time now, const LedgerRead& read);
    void on_created(Time now, const LedgerCreated& created);
    void ledger_failed(Time now, const std::string& sentence);
    void on_won(Time now);
    void expire(Time now);
    void end_generation(Time now, const std::string& cause, Note::Level level);
    void all_complete(Time now);
    bool may_follow(Time now, bool& by_lease) const;
    Time may_follow_at() const;
    bool candidate(Time now, const NodeState& node) const;
    std::vector<Candidate> candidates(Time now) const;
    std::vector<std::string> missing(const std::vector<Candidate>& here) const;
    Time members_awaited_until(const std::vector<Candidate>& here, bool by_lease) const;
    void lead(Time now);

    // proposal.cc: what follows
    void decide_failure();
    void gather(Time now, bool by_lease);
    void say_waiting(Time now, const std::string& sentence);
    void propose(LedgerEntry entry);
    void propose_generation(const std::vector<Candidate>& here);
    void propose_end();
    void close(Time now);
    void tell_end(NodeState& node);
    void closed(Time now);

    bool holding() const { return held && !held->over; }
    // The leader's own node is the job: nobody else could train, so there is no lease.
    bool single() const { return config.limits.max_nodes == 1 && !config.outside; }
    Generation newest() const { return top ? top->assignment.generation : kNoGeneration; }
    Duration lease() const { return config.limits.times.lease; }
    void note(Note::Level level, std::string sentence) {
        effects.push_back(Note{level, std::move(sentence)});
    }
    void send(Session session, ToNode message) {
        effects.push_back(Send{session, std::move(message)});
    }
};

}  // namespace ddprun::rendezvous
