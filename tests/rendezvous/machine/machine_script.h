// A script for the rendezvous machine. It plays the nodes and the ledger of a job, and turns the
// effects of each step into text, one line for each effect. "1: " before a line means that it goes
// to session 1. The machine is pure, so a test gives the time of each step and nothing ever waits.
// One test owns one script.
#pragma once

#include <gmock/gmock.h>

#include <map>

#include "rendezvous/machine/machine.h"
#include "tests/support/builders.h"

namespace ddprun::rendezvous {

using namespace ddprun::test;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

using Lines = std::vector<std::string>;

// What is left of the lease, in an Ack or an Assigned.
inline std::string left(std::optional<Duration> remaining) {
    return remaining ? ", " + to_text(*remaining) + " left" : "";
}

// "0 {a b}": the generation and its members by rank.
inline std::string names(const Assignment& a) {
    std::string text = std::to_string(a.generation.value) + " {";
    for (const Member& m : a.members) text += (text.back() == '{' ? "" : " ") + m.node.name;
    return text + "}";
}

// Shows only what most tests are about. Numbers of Acks, the facts and the order of successors are
// left out; a test that needs one of these reads the message itself.
inline std::string describe(const ToNode& message) {
    if (std::get_if<Welcome>(&message)) return "Welcome";
    if (std::get_if<Parked>(&message)) return "Parked";
    if (const auto* m = std::get_if<Ack>(&message))
        return "Ack" + (m->held > kNoGeneration ? " holds " + std::to_string(m->held.value) : "") +
               (m->over > kNoGeneration ? " over " + std::to_string(m->over.value) : "") +
               left(m->remaining) +
               (m->snapshot ? ", wants a snapshot for " + m->snapshot->by : "");
    if (const auto* m = std::get_if<Assigned>(&message))
        return "Assigned " + std::to_string(m->place.generation.value) + ", node " +
               std::to_string(m->place.node_rank) + " of " + std::to_string(m->place.nodes) +
               left(m->remaining);
    if (const auto* m = std::get_if<Stop>(&message))
        return "Stop by signal " + std::to_string(m->signal);
    if (const auto* m = std::get_if<Examine>(&message)) {
        std::string text = "Examine";
        for (const int rank : m->ranks) text += " " + std::to_string(rank);
        return text;
    }
    if (const auto* m = std::get_if<Finished>(&message))
        return "Finished " + std::to_string(m->ending.code);
    if (const auto* m = std::get_if<Refused>(&message))
        return (m->for_good ? "Refused for good: " : "Refused: ") + m->sentence;
    if (const auto* m = std::get_if<Standing>(&message))
        return std::string(m->leads ? "Standing: leads" : "Standing: dormant") +
               (m->held > kNoGeneration ? ", holds " + std::to_string(m->held.value) : "");
    const auto& elsewhere = std::get<Elsewhere>(message);
    return elsewhere.address.empty() ? "Elsewhere: wait" : "Elsewhere: " + elsewhere.address;
}

// One line for each effect. What is no other effect is a log line: "note: …".
inline std::string describe(const Effect& effect) {
    if (const auto* e = std::get_if<Send>(&effect))
        return std::to_string(e->session.value) + ": " + describe(e->message);
    if (const auto* e = std::get_if<Close>(&effect))
        return std::to_string(e->session.value) + ": closed";
    if (std::get_if<ReadLedger>(&effect)) return "read the ledger";
    if (const auto* e = std::get_if<LookLedger>(&effect))
        return "look " + std::to_string(e->number);
    if (const auto* e = std::get_if<Call>(&effect)) return "call " + e->peer.node.name;
    if (const auto* e = std::get_if<Standby>(&effect))
        return "stand by " + (e->peer ? e->peer->node.name : "nobody");
    if (const auto* e = std::get_if<LookUpOwners>(&effect))
        return std::to_string(e->session.value) + ": look up " +
               std::to_string(e->asked.sockets.size()) + " owners";
    if (std::get_if<Requeue>(&effect)) return "requeue";
    if (const auto* e = std::get_if<AskNodeStates>(&effect)) {
        std::string text = "ask Slurm about";
        for (const std::string& host : e->hosts) text += " " + host;
        return text;
    }
    if (const auto* e = std::get_if<Answered>(&effect)) {
        const char* answers[] = {"done", "already", "again", "refused", "unknown node"};
        return std::string("answer: ") + answers[static_cast<int>(e->answer)] + ": " + e->sentence;
    }
    if (const auto* e = std::get_if<Closed>(&effect))
        return "closed with " + std::to_string(e->ending.code);
    if (const auto* e = std::get_if<CreateEntry>(&effect)) {
        const std::string what = "create " + std::to_string(e->entry.number.value) + ": ";
        if (e->entry.takes_over())
            return what + "takeover of generation " + names(e->entry.assignment);
        if (e->entry.end())
            return what + "end " + std::to_string(e->entry.end()->code) + ", " +
                   e->entry.end()->sentence;
        if (const auto* begins = e->entry.allocation())
            return what + "allocation " + std::to_string(e->entry.requeue) +
                   (begins->awaits ? " after generation " + names(e->entry.assignment) : "");
        return what + "generation " + names(e->entry.assignment) + " after " +
               e->entry.assignment.cause;
    }
    return "note: " + std::get<Note>(effect).sentence;
}

// One leader and its nodes. For each session it keeps the Beat that comes next: its number, the
// newest Ack as echo, and what the node said of itself last. So a test names only what changes. For
// the ledger it keeps the entry that is being created.
class Script {
  public:
    explicit Script(const Limits& limits) : Script(config(limits)) {}
    // The service becomes the leader at 0 and reads an empty ledger.
    explicit Script(const MachineConfig& config) : machine_(config, at(0)) {
        EXPECT_THAT(step(0, Lead{{node("leader"), "leader", 1}}), ElementsAre("read the ledger"));
        EXPECT_THAT(step(0, LedgerRead{}), IsEmpty());
    }
    // No shared ledger, no Slurm, inside of the job. The seed is fixed, so that each run is the
    // same.
    // A job of one node is that of node a.
    static MachineConfig config(const Limits& limits) {
        return {.run_id = "job",
                .self = node(limits.max_nodes == 1 ? "a" : "leader"),
                .requeue = 0,
                .command_digest = {},
                .version = "1",
                .limits = limits,
                .seed = 1};
    }

    // Notes the create that the machine asks for, and the Acks, which the next Beats will echo.
    Lines step(double now, const Event& event) {
        const Effects effects = machine_.step(at(now), event);
        for (const Effect& effect : effects) {
            if (const auto* e = std::get_if<CreateEntry>(&effect)) creating_ = e->entry;
            const auto* sent = std::get_if<Send>(&effect);
            const auto* ack = sent ? std::get_if<Ack>(&sent->message) : nullptr;
            if (ack) beats_[sent->session.value].echo = ack->number;
            if (ack && ack->news) news_[sent->session.value].push_back(*ack->news);
            if (ack && ack->facts) told_[sent->session.value] = *ack->facts;
        }
        return lines(effects);
    }
    Lines come(double now, int session, const ToLeader& message) {
        return step(now, Came{Session{session}, message});
    }
    // Time passes, and nothing else happens.
    Lines tick(double now) { return step(now, Tick{}); }
    Lines hello(double now, int session, const NodeId& who, const std::string& run = "job") {
        return come(now, session, Hello{run, who, "1", 0});
    }
    // A new node: Hello, Join (with one slot, if nothing else is said), and Beat 1. Returns the
    // lines of both steps.
    Lines join(double now, int session, const NodeId& who, const Offer& with = offer()) {
        Lines all = hello(now, session, who);
        ++beats_[session].number;
        for (const std::string& line : come(now, session, Join{with, beats_[session]}))
            all.push_back(line);
        return all;
    }
    // A node comes anew, and says what it said on its last connection.
    Lines joins_again(double now, int session, int last, const NodeId& who) {
        beats_[session] = beats_[last];
        return join(now, session, who);
    }
    // A Beat without news. It echoes the newest Ack; floor and running stay as the node said them
    // last.
    Lines beat(double now, int session) {
        ++beats_[session].number;
        return come(now, session, Beat(beats_[session]));
    }
    // The workers of that generation have started on the node.
    Lines runs(double now, int session, int generation) {
        beats_[session].running = Generation{generation};
        return beat(now, session);
    }
    // A worker has written the snapshot of that step.
    Lines snapshots(double now, int session, std::int64_t step) {
        beats_[session].snapshot = step;
        return beat(now, session);
    }
    // What all snapshots of its workers have taken from training.
    Lines saves(double now, int session, Duration all) {
        beats_[session].saving = all;
        return beat(now, session);
    }
    Lines uses(double now, int session, const Usage& usage) {
        beats_[session].usage = usage;
        return beat(now, session);
    }
    Lines is_at(double now, int session, std::int64_t step) {
        beats_[session].step = step;
        return beat(now, session);
    }
    // A new report of progress came `ago` seconds before this Beat.
    Lines progresses(double now, int session, std::vector<RankStep> slowest, double ago = 0) {
        ++beats_[session].reports;
        beats_[session].reported = sec(ago);
        beats_[session].slowest = std::move(slowest);
        return beat(now, session);
    }
    // The node's workers stand still in these ways.
    Lines stands(double now, int session, std::vector<Still> still) {
        beats_[session].still = std::move(still);
        return beat(now, session);
    }
    Lines goes(double now, int session, const Pace& pace) {
        beats_[session].pace = pace;
        return beat(now, session);
    }
    // The phases of that generation's restart that the node has passed, each with its moment.
    Lines marks(double now, int session, int generation,
                const std::vector<std::pair<RestartPhase, double>>& passed) {
        Marks& marks = beats_[session].marks;
        marks = {Generation{generation}, {}};
        for (const auto& [phase, when] : passed) marks.passed.push_back({phase, sec(now - when)});
        return beat(now, session);
    }
    // The node has heard of that entry of the ledger, perhaps from another leader.
    Lines has_seen(double now, int session, int entry) {
        beats_[session].seen = EntryNumber{entry};
        return beat(now, session);
    }
    // The vow of rule 5: all workers are gone, and the node will never run that generation again.
    Lines vows(double now, int session, int floor) {
        beats_[session].floor = Generation{floor};
        beats_[session].running = kNoGeneration;
        beats_[session].complete = false;
        return beat(now, session);
    }
    Lines fails(double now, int session, int generation, const WorkerOutcome& outcome) {
        return come(now, session, Report{Generation{generation}, {outcome}});
    }
    // All workers of the node have exited 0, or stopped as they were asked to.
    Lines completes(double now, int session, int generation) {
        beats_[session].running = Generation{generation};
        beats_[session].complete = true;
        return beat(now, session);
    }
    // The ledger answers the create that is open. If it failed, the disk is full.
    Lines created(double now, LedgerCreated::Outcome outcome = LedgerCreated::Outcome::won) {
        return step(now, LedgerCreated{outcome, creating_, "disk full"});
    }
    // Nodes a (session 1) and b (session 2) have joined at 0 and echoed an Ack at 0.5. Generation 0
    // is being recorded.
    void both_are_there() {
        join(0, 1, node("a"));
        join(0, 2, node("b"));
        beat(0.5, 1);
        beat(0.5, 2);
    }
    // Generation 0 is recorded, and both run it. H is 8: each has echoed the Ack of 0, and 0.8 L is
    // 8 s.
    void both_run() {
        both_are_there();
        created(0.6);
        runs(1, 1, 0);
        runs(1, 2, 0);
    }
    // The newest entry that the machine asked to create. It stays readable after the answer.
    LedgerEntry creating() const { return creating_; }
    // The newest facts that an Ack has carried to this session.
    const Facts& told(int session) const { return told_.at(session); }
    // The news that Acks have carried to this session since the last call.
    std::vector<News> take_news(int session) { return std::exchange(news_[session], {}); }
    Snapshot snapshot() const { return machine_.snapshot(); }
    JobStatus status(double now) const { return machine_.status(at(now)); }
    // When the machine wants the next Tick at the latest.
    Time next() const { return machine_.next_deadline(); }

    static Lines lines(const Effects& effects) {
        Lines all;
        for (const Effect& effect : effects) all.push_back(describe(effect));
        return all;
    }

  private:
    Machine machine_;
    std::map<std::int64_t, Beat> beats_;
    std::map<std::int64_t, Facts> told_;
    std::map<std::int64_t, std::vector<News>> news_;
    LedgerEntry creating_;
};

}  // namespace ddprun::rendezvous
