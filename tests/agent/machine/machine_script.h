// What the scripts of the agent machine share. It turns the effects of each step into text, one
// line for each effect, and it plays the leader of a job of two nodes. The machine is pure, so a
// test gives the time of each step and nothing ever waits.
#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "agent/machine/machine.h"
#include "tests/support/builders.h"

namespace ddprun::agent {

using namespace ddprun::test;

using Lines = std::vector<std::string>;
constexpr Generation g0{0};

// The place of the first of two nodes of equal size: its ranks begin at 0, and it has the store.
inline rendezvous::NodePlace first_of_two(std::int64_t generation, int slots = 1) {
    rendezvous::NodePlace place;
    place.generation = Generation{generation};
    place.nodes = 2;
    place.slots = slots;
    place.world_size = 2 * slots;
    return place;
}

inline std::string text(Time time) {
    return time == kNever ? "never" : to_text(time.time_since_epoch());
}

// What a Beat says of progress: the number of reports, how long ago the newest came, and the
// slowest ranks as rank@step.
inline std::string reports(const rendezvous::Beat& beat) {
    if (beat.reports == 0) return {};
    std::string text =
        " reports " + std::to_string(beat.reports) + " " + to_text(beat.reported) + " ago";
    for (const auto& [rank, step] : beat.slowest)
        text += " " + std::to_string(rank) + "@" + std::to_string(step);
    return text;
}

// What a Join says of the newest generation that the node knows.
inline std::string known(const rendezvous::Facts& facts) {
    std::string text;
    if (facts.reach != rendezvous::Reach::start) text += "," + reached(facts.reach);
    for (const auto& each : facts.failures)
        text += ", " + each.outcome.sentence + " " + to_text(each.outcome.age) + " ago";
    if (facts.interruption) text += ", " + facts.interruption->sentence;
    if (facts.stop) text += ", stop: " + facts.stop->reason;
    return text.empty() ? text : " knows of " + std::to_string(facts.generation.value) + text;
}

// Shows what most tests are about. Numbers of Beats, marks and the offer are left out.
inline std::string describe(const rendezvous::ToLeader& message) {
    if (const auto* m = std::get_if<rendezvous::Join>(&message))
        return "Join: " + describe(rendezvous::ToLeader(m->beat)) + known(m->facts);
    if (const auto* m = std::get_if<rendezvous::Beat>(&message))
        return "Beat echo " + std::to_string(m->echo) + " floor " + std::to_string(m->floor.value) +
               " running " + std::to_string(m->running.value) + reached(m->reach) +
               (m->complete ? " complete" : "") +
               (m->still.empty() ? "" : " still " + std::to_string(m->still.size())) + reports(*m);
    if (const auto* m = std::get_if<rendezvous::Report>(&message)) {
        std::string all = "Report";
        for (const auto& outcome : m->outcomes)
            all += outcome.hung ? " hung " + std::to_string(outcome.rank) : ": " + outcome.sentence;
        return all;
    }
    if (const auto* m = std::get_if<rendezvous::StopAsked>(&message))
        return "StopAsked " + std::to_string(m->signal) +
               (m->cause == rendezvous::StopCause::signal
                    ? ""
                    : std::string(" ") + to_string(m->cause)) +
               (m->left ? " " + to_text(*m->left) + " left" : "") +
               (m->requeue ? " to requeue" : "");
    if (const auto* m = std::get_if<rendezvous::Unusable>(&message))
        return "Unusable: " + m->reason;
    return std::get_if<rendezvous::Leave>(&message) ? "Leave" : "other";
}

// One line for each effect. What is no other effect is a log line: "note: …".
inline std::string describe(const Effect& effect) {
    if (const auto* e = std::get_if<Connect>(&effect))
        return "connect " +
               (e->self              ? "self "
                : e->address.empty() ? ""
                                     : e->address + " ") +
               (e->once ? "once " : "") + "until " + text(e->deadline);
    if (std::get_if<Lead>(&effect)) return "lead";
    if (const auto* e = std::get_if<LeaderHeard>(&effect)) return "heard " + e->leader.node.name;
    if (const auto* e = std::get_if<SendMessage>(&effect)) return describe(e->message);
    if (const auto* e = std::get_if<SetDeadline>(&effect)) return "deadline " + text(e->deadline);
    if (std::get_if<OpenStore>(&effect)) return "open store";
    if (const auto* e = std::get_if<Spawn>(&effect))
        return "spawn " + std::to_string(e->place.generation.value);
    if (const auto* e = std::get_if<SignalWorkers>(&effect))
        return std::string(e->stops ? "signal " : "pass on ") + std::to_string(e->signal) +
               (e->hint && e->hint->cause != rendezvous::StopCause::signal
                    ? std::string(", ") + to_string(e->hint->cause) + ", " + to_text(e->hint->grace)
                    : "") +
               (e->abort.empty() ? "" : ", abort " + std::to_string(e->abort.front()));
    if (const auto* e = std::get_if<AskSnapshot>(&effect))
        return "ask for snapshot " + std::to_string(e->hint.asked.number) + " of " +
               std::to_string(e->hint.generation.value) + " for " + e->hint.asked.by;
    if (const auto* e = std::get_if<ExamineWorkers>(&effect)) {
        std::string all = "examine";
        for (const int local_rank : e->local_ranks) all += " " + std::to_string(local_rank);
        return all;
    }
    if (const auto* e = std::get_if<Sweep>(&effect))
        return "sweep " + std::to_string(e->generation.value);
    if (const auto* e = std::get_if<HurrySweep>(&effect)) return "hurry " + to_text(e->grace);
    if (const auto* e = std::get_if<LookForStuck>(&effect))
        return "look for stuck after " + to_text(e->since);
    if (std::get_if<AskJobEnd>(&effect)) return "when does the job end?";
    if (std::get_if<CloseStore>(&effect)) return "close store";
    if (const auto* e = std::get_if<Exit>(&effect)) return "exit " + std::to_string(e->ending.code);
    return "note: " + std::get<Note>(effect).sentence;
}

// What workers are told.
inline std::string describe(const Notice& notice) {
    if (const auto* stop = std::get_if<Stopping>(&notice))
        return "stop " + stop->reason + " " + std::to_string(stop->signal);
    if (const auto* hint = std::get_if<SnapshotHint>(&notice))
        return "snapshot " + std::to_string(hint->asked.number);
    const auto& item = std::get<rendezvous::NewsItem>(notice);
    if (item.kind == rendezvous::NewsKind::worker_lost)
        return "worker_lost " + std::to_string(item.first_rank);
    return (item.kind == rendezvous::NewsKind::node_lost ? "node_lost " : "node_joined ") +
           item.node;
}

// Node a with two workers, in a job of two nodes. The lease is the default of 10 s; a `config`
// gives what a test changes.
class Script {
  public:
    explicit Script(MachineConfig config = {}) : machine_(of_job(std::move(config)), at(0)) {}

    Lines step(double now, const Event& event) {
        Lines all;
        for (const Effect& effect : machine_.step(at(now), event))
            if (const auto* tell = std::get_if<TellWorkers>(&effect))
                notices_.push_back((signalled(all) ? "after the signal: " : "") +
                                   describe(tell->notice));
            else
                all.push_back(describe(effect));
        return all;
    }
    // What the workers were told since the last call. The lines of step() are without it.
    Lines take_notices() { return std::exchange(notices_, {}); }
    // A message of the leader.
    Lines told(double now, const rendezvous::ToNode& message) {
        return step(now, MessageCame{message});
    }
    Lines tick(double now) { return step(now, Tick{}); }
    // The leader accepts the node. There is no order, so nobody else may lead.
    Lines welcome(double now) {
        return told(now, rendezvous::Welcome{node("leader"), {}, {}, 2, {}, "", 0});
    }
    // The newest Ack. `over`: the highest generation that has ended. `remaining` is granted from
    // the sending of Beat `beat`; without it nothing is granted.
    Lines ack(double now, int over = -1, std::int64_t beat = 0,
              std::optional<Duration> remaining = {}, std::optional<rendezvous::Facts> facts = {}) {
        rendezvous::Ack ack;
        ack.facts = std::move(facts);
        ack.number = ++acks_;
        ack.beat = beat;
        ack.entry = machine_.snapshot().seen;
        ack.held = machine_.snapshot().running;
        ack.remaining = remaining;
        ack.over = Generation{over};
        return told(now, ack);
    }
    // … to which a test adds something.
    rendezvous::Ack next_ack() {
        rendezvous::Ack ack;
        ack.number = ++acks_;
        ack.entry = machine_.snapshot().seen;
        return ack;
    }
    // Generation 0, in entry 0. The lease lasts `remaining` seconds from the sending of Beat
    // `beat`.
    Lines assigned(double now, double remaining, std::int64_t beat = 2) {
        return told(now,
                    rendezvous::Assigned{EntryNumber{0}, first_of_two(0, 2), beat, sec(remaining)});
    }
    Lines exits(double now, const rendezvous::WorkerOutcome& outcome) {
        return step(now, WorkerExited{g0, outcome, at(now)});
    }
    // Welcomed at 0. Ack 1 comes at 0.1, and Beat 2 echoes it.
    void join() {
        step(0, Started{});
        welcome(0);
        ack(0.1);
    }
    // … and runs generation 0 since 0.2. Its deadline is 8.1: 8 s from Beat 2, which was sent at
    // 0.1.
    void run() {
        join();
        assigned(0.2, 8);
    }
    // The marks in the Beat that is due at that time: which phases of a restart are past, and for
    // how long.
    Lines marks(double now) {
        Lines all;
        for (const Effect& effect : machine_.step(at(now), Tick{})) {
            const auto* sent = std::get_if<SendMessage>(&effect);
            const auto* beat = sent ? std::get_if<rendezvous::Beat>(&sent->message) : nullptr;
            if (!beat) continue;
            EXPECT_EQ(beat->marks.generation, g0);
            for (const rendezvous::Mark& mark : beat->marks.passed)
                all.push_back(to_text(mark.ago) + " " + to_string(mark.phase));
        }
        return all;
    }
    Snapshot snapshot() const { return machine_.snapshot(); }
    Time next() const { return machine_.next_deadline(); }

  private:
    static bool signalled(const Lines& lines) {
        return std::ranges::any_of(
            lines, [](const std::string& line) { return line.starts_with("signal "); });
    }
    static MachineConfig of_job(MachineConfig config) {
        config.run_id = "job";
        config.node = node("a");
        config.offer = offer(2);
        config.version = "1";
        return config;
    }

    Machine machine_;
    Lines notices_;
    std::int64_t acks_ = 0;
};

// For what takes longer than a Beat period of 0.5 s: the regular Beats would only hide the other
// lines.
inline Lines but_beats(Lines lines) {
    std::erase_if(lines, [](const std::string& line) { return line.starts_with("Beat"); });
    return lines;
}

}  // namespace ddprun::agent
