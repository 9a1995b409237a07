// A generation that makes no progress: the part of the rendezvous machine that finds it out, asks
// where the slowest workers are, and ends it (hang.h has the rules).
#include <algorithm>

#include "rendezvous/machine/machine_state.h"
#include "rendezvous/model/node_name.h"
#include "rendezvous/rules/hang.h"

namespace ddprun::rendezvous {
namespace {

constexpr double kLate = 0.3;  // of a lease after its time: it was this process that stood still
constexpr auto kExamined = std::chrono::seconds{10};  // until a node must have answered

}  // namespace

// The number tells what is new: the same report heard again, a little later, is no progress.
void Machine::State::heard_progress(Time now, const NodeState& node) {
    std::int64_t& known = reports[node.id];
    if (node.beat.reports <= known) return;
    known = node.beat.reports;
    reported_at = std::max(reported_at, now - node.beat.reported);
}

void Machine::State::watch_for_hang(Time now) {
    if (config.limits.hang_timeout <= Duration{} || reported_at == kLongAgo || !holding() || stop ||
        regrouping)
        return hang.reset();
    if (hang && reported_at > hang->reported) {
        note(Note::Level::info, "progress was made after all; the generation goes on");
        hang.reset();
    }
    if (!hang) {
        const Time at = hangs_at(reported_at, config.limits);
        if (now < at) return wake_at(at);
        if (now > at + share(lease(), kLate)) {
            reported_at = now;
            return wake_at(hangs_at(now, config.limits));
        }
        examine(now);
    }
    if (hang->asked.empty() || now >= hang->until) return end_hung(now);
    wake_at(hang->until);
}

// The slowest can only be looked at while they live, so they are before anything is stopped.
void Machine::State::examine(Time now) {
    std::vector<NodeSteps> nodes;
    for (const Member& member : held->assignment.members) {
        const NodeState* node = roster.find(member.node);
        if (node && node->connected() && node->beat.running == newest())
            nodes.push_back({member, node->beat.slowest});
    }
    hang = Hang{reported_at, now + kExamined, find_slowest(nodes), {}, {}};
    std::map<NodeId, std::vector<int>> ranks;
    for (const Slow& slow : hang->slowest.workers) ranks[slow.node].push_back(slow.rank);
    for (const auto& [id, theirs] : ranks) {
        hang->asked.insert(id);
        send(*roster.find(id)->session, Examine{newest(), theirs});
    }
}

void Machine::State::on_examined(const NodeId& node, const Report& report) {
    if (!hang || report.generation != newest() || !hang->asked.contains(node)) return;
    for (const WorkerOutcome& outcome : report.outcomes)
        if (outcome.hung) hang->seen[outcome.rank] = outcome;
    hang->asked.erase(node);
}

void Machine::State::end_hung(Time now) {
    const Hang found = std::move(*hang);
    const std::vector<Slow>& slowest = found.slowest.workers;
    WorkerOutcome outcome;
    for (const Slow& slow : slowest) {
        const auto seen = found.seen.find(slow.rank);
        outcome.stack.push_back(place_of(slow) +
                                (seen == found.seen.end() ? ": its node has not answered" : ":"));
        if (seen == found.seen.end()) continue;
        if (slow == slowest.front()) {
            outcome.pid = seen->second.pid;
            outcome.tail = seen->second.tail;
        }
        for (const std::string& line : seen->second.stack) outcome.stack.push_back("    " + line);
    }
    if (!slowest.empty()) {
        outcome.rank = slowest.front().rank;
        outcome.local_rank = slowest.front().local_rank;
    }
    outcome.hung = true;
    outcome.sentence = hang_sentence(now - found.reported, config.limits, found.slowest);
    const std::string name = slowest.empty() ? std::string() : slowest.front().node.name;
    facts.failed(name, outcome, found.reported);
    if (found.slowest.one_node) culprit = name;
    end_generation(now, outcome.sentence, Note::Level::warn);
}

// ---- who fails again and again

// The node because of which the newest has ended; empty: none.
std::string Machine::State::first_cause() const {
    if (!culprit.empty()) return culprit;
    const auto& interrupted = facts.interrupted();
    return interrupted && interrupted->what.blame ? interrupted->what.node : std::string();
}

Blame Machine::State::judged() const {
    const std::string cause = first_cause();
    if (!config.limits.blame || cause.empty() || !top) return blame;
    const std::vector<Member>& members = top->assignment.members;
    const std::string first = host_of(members.front().node.name);
    if (std::ranges::all_of(members,
                            [&](const Member& each) { return host_of(each.node.name) == first; }))
        return blame;  // there is no other host
    return with_cause(blame, {newest(), cause});
}

void Machine::State::say_blamed() {
    for (const std::string& node : top->blame.nodes) {
        if (std::find(blame.nodes.begin(), blame.nodes.end(), node) != blame.nodes.end()) continue;
        const std::vector<Member>& members = top->assignment.members;
        const bool replaced = std::none_of(members.begin(), members.end(), [&](const Member& each) {
            return host_of(each.node.name) == node;
        });
        note(Note::Level::warn,
             blame_sentence(top->blame, node, replaced) + "; " + exclude_option(top->blame));
    }
    blame = top->blame;
}

}  // namespace ddprun::rendezvous
