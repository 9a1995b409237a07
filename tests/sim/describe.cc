// The one-line texts of the trace. They are short, because a job has tens of thousands of lines,
// and each begins with the name of its type, so that a trace can be searched for it.
#include "tests/sim/describe.h"

#include <type_traits>

#include "base/overload.h"
#include "tests/support/builders.h"

namespace ddprun::sim {

namespace {

// Numbers, and the strong types of proto/ids.h.
template <class T>
std::string text(const T& value) {
    if constexpr (std::is_arithmetic_v<T>)
        return std::to_string(value);
    else
        return std::to_string(value.value);
}

// In microseconds: the smallest steps of the simulator, and shorter than nanoseconds to read.
std::string text(Duration duration) {
    return duration == Duration::max() ? "ever" : std::to_string(duration.count() / 1000) + "us";
}

std::string text(Time time) { return time == kNever ? "never" : text(time.time_since_epoch()); }

std::string text(const rendezvous::NodeId& node) {
    return node.name + "#" + text(node.incarnation);
}

std::string text(const rendezvous::Beat& beat) {
    return "n" + text(beat.number) + " e" + text(beat.echo) + " floor" + text(beat.floor) +
           " seen" + text(beat.seen) + " run" + text(beat.running) + " silent " +
           text(beat.silent) + test::reached(beat.reach) +
           (beat.reports > 0 ? " reports" + text(beat.reports) : std::string());
}

std::string text(const rendezvous::WorkerOutcome& outcome) {
    return "rank " + text(outcome.rank) + " exit " + text(outcome.exit_code) + " signal " +
           text(outcome.signal);
}

std::string text(const rendezvous::Facts& facts) {
    std::string line = ", facts of g" + text(facts.generation);
    line += test::reached(facts.reach);
    for (const auto& each : facts.failures)
        line += ", " + text(each.outcome) + " " + text(each.outcome.age) + " ago";
    if (facts.interruption)
        line += ", \"" + facts.interruption->sentence + "\" " + text(facts.interrupted) + " ago";
    if (facts.silent) line += ", silent:";
    for (const auto& node : facts.silent.value_or(std::vector<rendezvous::NodeId>{}))
        line += " " + text(node);
    return line + (facts.stop ? ", stop: " + facts.stop->reason : "");
}

std::string text(const rendezvous::LedgerEntry& entry) {
    // In the order of the variant.
    const char* kinds[] = {"generation ", "takeover ", "end ", "allocation "};
    std::string line = "#" + text(entry.number) + " " + kinds[entry.act.index()];
    return line + (entry.end() ? describe(*entry.end()) : describe(entry.assignment));
}

}  // namespace

std::string describe(const rendezvous::Ending& ending) {
    return "verdict " + text(static_cast<int>(ending.verdict)) + " code " + text(ending.code) +
           " \"" + ending.sentence + "\"" +
           (ending.first_failure ? " first: " + text(*ending.first_failure) : "");
}

std::string describe(const rendezvous::Assignment& assignment) {
    std::string line = "g" + text(assignment.generation) + " world " + text(assignment.world_size) +
                       " restarts " + text(assignment.restarts) + " {";
    for (const auto& member : assignment.members)
        line += " " + text(member.node) + "@" + text(member.rank_offset);
    return line + " } " + assignment.cause;
}

std::string describe(const rendezvous::NodePlace& place) {
    return "g" + text(place.generation) + " node " + text(place.node_rank) + " of " +
           text(place.nodes) + ", ranks " + text(place.rank_offset) + "+" + text(place.slots) +
           " of " + text(place.world_size);
}

std::string describe(const rendezvous::ToLeader& message) {
    using namespace rendezvous;
    return std::visit(Overload{[](const Hello& m) { return "Hello " + text(m.node); },
                               [](const Join& m) { return "Join " + text(m.beat) + text(m.facts); },
                               [](const Beat& m) { return "Beat " + text(m); },
                               [](const Report& m) {
                                   std::string line = "Report g" + text(m.generation);
                                   for (const auto& outcome : m.outcomes)
                                       line += ", " + text(outcome);
                                   return line;
                               },
                               [](const StopAsked& m) { return "StopAsked " + text(m.signal); },
                               [](const Leave& m) { return "Leave " + m.reason; },
                               [](const Unusable& m) { return "Unusable \"" + m.reason + '"'; },
                               [](const Gone& m) { return "Gone " + text(m.node); },
                               [](const Inquire&) { return std::string("Inquire"); },
                               [](const AskOwners& m) { return "AskOwners " + text(m.number); },
                               [](const Operate&) { return std::string("Operate"); }},
                      message);
}

std::string describe(const rendezvous::ToNode& message) {
    using namespace rendezvous;
    return std::visit(
        Overload{[](const Welcome& m) { return "Welcome " + text(m.leader); },
                 [](const Ack& m) {
                     return "Ack n" + text(m.number) + " beat" + text(m.beat) + " entry" +
                            text(m.entry) + " held" + text(m.held) + " remaining " +
                            (m.remaining ? text(*m.remaining) : "none") + " over" + text(m.over) +
                            (m.facts ? text(*m.facts) : "") +
                            (m.news ? " news " + std::to_string(m.news->items.size()) : "");
                 },
                 [](const Assigned& m) {
                     return "Assigned entry" + text(m.entry) + " beat" + text(m.beat) +
                            " remaining " + text(m.remaining) + " " + describe(m.place);
                 },
                 [](const Parked& m) { return "Parked " + m.sentence; },
                 [](const Elsewhere& m) { return "Elsewhere " + m.address; },
                 [](const Stop& m) { return "Stop g" + text(m.generation) + " " + m.reason; },
                 [](const Finished& m) { return "Finished " + describe(m.ending); },
                 [](const Refused& m) { return "Refused " + m.sentence; },
                 [](const Examine& m) {
                     std::string line = "Examine g" + text(m.generation);
                     for (const int rank : m.ranks) line += " " + text(rank);
                     return line;
                 },
                 [](const Standing& m) {
                     return "Standing " + text(m.node) + (m.leads ? " leads" : " dormant") +
                            " held" + text(m.held) + " entry" + text(m.entry);
                 },
                 [](const Owners& m) { return "Owners " + text(m.number); }},
        message);
}

std::string describe(const rendezvous::Event& event) {
    using namespace rendezvous;
    return std::visit(
        Overload{[](const Came& e) { return "s" + text(e.session) + " " + describe(e.message); },
                 [](const ConnectionLost& e) { return "ConnectionLost s" + text(e.session); },
                 [](const LedgerUnread& e) { return "LedgerUnread " + e.sentence; },
                 [](const LedgerRead& e) { return "LedgerRead " + text(e.entries.size()); },
                 [](const LedgerCreated& e) {
                     const char* outcomes[] = {"won ", "lost ", "failed "};
                     return std::string("LedgerCreated ") + outcomes[static_cast<int>(e.outcome)] +
                            text(e.entry);
                 },
                 [](const Requeued&) { return std::string("Requeued"); },
                 [](const OutOfService& e) {
                     std::string names = "OutOfService";
                     for (const auto& [name, state] : e.nodes) names += " " + name + " " + state;
                     return names;
                 },
                 [](const LedgerLooked& e) {
                     return "LedgerLooked " + std::to_string(e.number) + ": " +
                            (e.newest ? std::to_string(*e.newest) : "no answer");
                 },
                 [](const Lead&) { return std::string("Lead"); },
                 [](const LeaderHeard& e) { return "LeaderHeard " + e.leader.node.name; },
                 [](const Called& e) {
                     return "Called " + text(e.node) + " " + describe(ToNode(e.standing));
                 },
                 [](const Operated& e) {
                     const char* actions[] = {"stop", "restart", "drain", "limits", "snapshot"};
                     return std::string("Operated ") + actions[e.action.index()];
                 },
                 [](const Tick&) { return std::string("Tick"); }},
        event);
}

std::string describe(const rendezvous::Effect& effect) {
    using namespace rendezvous;
    return std::visit(
        Overload{[](const Call& e) { return "Call " + text(e.peer.node); },
                 [](const LookUpOwners& e) { return "LookUpOwners s" + text(e.session); },
                 [](const Standby& e) {
                     return "Standby " + (e.peer ? text(e.peer->node) : std::string("none"));
                 },
                 [](const Send& e) { return "to s" + text(e.session) + " " + describe(e.message); },
                 [](const Close& e) { return "Close s" + text(e.session); },
                 [](const ReadLedger& e) { return "ReadLedger " + text(e.from); },
                 [](const CreateEntry& e) { return "CreateEntry " + text(e.entry); },
                 [](const LookLedger& e) { return "LookLedger " + std::to_string(e.number); },
                 [](const Requeue&) { return std::string("Requeue"); },
                 [](const AskNodeStates& e) {
                     return "AskNodeStates " + std::to_string(e.hosts.size());
                 },
                 [](const Answered& e) { return "Answered " + e.sentence; },
                 [](const Closed& e) { return "Closed " + describe(e.ending); },
                 [](const Note& e) { return "note: " + e.sentence; }},
        effect);
}

std::string describe(const agent::Event& event) {
    using namespace agent;
    return std::visit(
        Overload{[](const Started&) { return std::string("Started"); },
                 [](const LinkUp&) { return std::string("LinkUp"); },
                 [](const LinkLost& e) { return "LinkLost " + e.sentence; },
                 [](const MessageCame& e) { return describe(e.message); },
                 [](const WorkerStarted& e) { return "WorkerStarted g" + text(e.generation); },
                 [](const WorkerNotStarted& e) {
                     return "WorkerNotStarted g" + text(e.generation) + " " + e.sentence;
                 },
                 [](const WorkerLost& e) {
                     return "WorkerLost g" + text(e.generation) + " local" +
                            std::to_string(e.local_rank);
                 },
                 [](const WorkerExited& e) {
                     return "WorkerExited g" + text(e.generation) + " " + text(e.outcome);
                 },
                 [](const Swept& e) { return "Swept g" + text(e.generation); },
                 [](const CannotKill& e) { return "CannotKill g" + text(e.generation); },
                 [](const KeeperFrozen&) { return std::string("KeeperFrozen"); },
                 [](const KeeperDied& e) { return "KeeperDied: it " + e.how; },
                 [](const WarmStartDiffers& e) { return "WarmStartDiffers: " + e.why; },
                 [](const KeeperBack&) { return std::string("KeeperBack"); },
                 [](const NoKeeper& e) { return "NoKeeper: " + e.why; },
                 [](const WorkerProgress& e) { return "WorkerProgress " + text(e.step); },
                 [](const WorkersExamined& e) {
                     return "WorkersExamined g" + text(e.generation) + " " +
                            text(e.outcomes.size());
                 },
                 [](const WorkersStill& e) {
                     return "WorkersStill g" + text(e.generation) + " " + text(e.still.size());
                 },
                 [](const WorkersInCollectives& e) {
                     return "WorkersInCollectives g" + text(e.generation);
                 },
                 [](const StoreContact& e) { return "StoreContact g" + text(e.generation); },
                 [](const LedgerFound& e) {
                     return std::string(e.found ? "LedgerFound" : "LedgerFound not");
                 },
                 [](const JobEndKnown& e) {
                     return "JobEndKnown " + (e.end ? text(*e.end) : std::string("none"));
                 },
                 [](const SignalCame& e) { return "SignalCame " + text(e.signal); },
                 [](const Tick&) { return std::string("Tick"); }},
        event);
}

std::string describe(const agent::Effect& effect) {
    using namespace agent;
    return std::visit(
        Overload{
            [](const Connect& e) {
                return "Connect " + (e.self ? "self" : e.address) + " until " + text(e.deadline);
            },
            [](const Lead&) { return std::string("Lead"); },
            [](const LeaderHeard& e) { return "LeaderHeard " + e.leader.node.name; },
            [](const SendMessage& e) { return "send " + describe(e.message); },
            [](const SetDeadline& e) { return "SetDeadline " + text(e.deadline); },
            [](const OpenStore& e) { return "OpenStore g" + text(e.place.generation); },
            [](const Spawn& e) { return "Spawn " + describe(e.place); },
            [](const SignalWorkers& e) { return "SignalWorkers " + text(e.signal); },
            [](const TellWorkers& e) {
                return "TellWorkers " + to_line(e.notice, e.generation, Duration{});
            },
            [](const AskSnapshot& e) {
                return "AskSnapshot " + std::to_string(e.hint.asked.number) + " g" +
                       text(e.hint.generation);
            },
            [](const ExamineWorkers& e) {
                return "ExamineWorkers g" + text(e.generation) + " " + text(e.local_ranks.size());
            },
            [](const AskJobEnd&) { return std::string("AskJobEnd"); },
            [](const Sweep& e) { return "Sweep g" + text(e.generation); },
            [](const HurrySweep& e) { return "HurrySweep " + to_text(e.grace); },
            [](const LookForStuck& e) { return "LookForStuck g" + text(e.generation); },
            [](const CloseStore&) { return std::string("CloseStore"); },
            [](const Exit& e) { return "Exit " + describe(e.ending); },
            [](const Note& e) { return "note: " + e.sentence; }},
        effect);
}

}  // namespace ddprun::sim
