// What operators ask for (PROTOCOL.md, rule 27): a stop, a restart, a node that is taken out. Each
// request can be repeated, also to the next leader. Part of the rendezvous machine.
#include <algorithm>
#include <set>

#include "base/overload.h"
#include "rendezvous/machine/machine_state.h"
#include "rendezvous/model/durations.h"
#include "rendezvous/model/node_name.h"
#include "rendezvous/model/stop_sentences.h"
#include "rendezvous/rules/late_joiner.h"
#include "rendezvous/rules/limit_change.h"

namespace ddprun::rendezvous {
namespace {

using Answer = OperatorAnswer;

}  // namespace

void MachineState::on_operated(Time now, const Operated& asked) {
    out.add(std::visit(
        Overload{
            [&](const StopJob& a) {
                return a.after_snapshot ? stop_after_snapshot_for(now, asked.by)
                                        : stop_for(now, asked.by);
            },
            [&](const RestartGeneration& a) { return restart_for(now, asked.by, a.generation); },
            [&](const DrainNode& a) { return drain_for(now, asked.by, a.node); },
            [&](const SetLimits& a) { return limits_for(now, asked.by, a.limits); },
            [&](const AskSnapshot&) { return snapshot_for(now, asked.by); }},
        asked.action));
}

// A stop works in every phase, as a signal to ddprun does.
Answered MachineState::stop_for(Time now, const std::string& by) {
    const StopAsked asked{.signal = kTerminate, .reason = "a stop by " + by};
    if (phase == Phase::ending || phase == Phase::closed || stop.is_asked()) {
        const bool requeued = end.requeues();
        if (stop.is_asked()) withdraw_requeue(asked);
        return {requeued && !end.requeues() ? Answer::done : Answer::already,
                "the job is ending already: " + why_it_ends() + time_to_kill(now)};
    }
    begin_stop(now, asked, operators_stop(by));
    stop_all(now);
    return {Answer::done, "the job stops; its workers have " +
                              (config.grace ? to_text(*config.grace) : std::string("their time")) +
                              " to write a snapshot"};
}

// "; what still runs is killed in 12.0 s"; empty where nobody knows.
std::string MachineState::time_to_kill(Time now) const {
    const auto at = kills_at();
    if (!at || !holding()) return {};
    return "; what still runs is killed in " + to_text(std::max(*at - now, Duration{}));
}

// The nodes count from when they get the Stop, which is a moment later. Before the time limit each
// node has a time of its own.
std::optional<Time> MachineState::kills_at() const {
    const auto since = stop.asked_at(StopCause::signal);
    if (!since || !config.grace) return std::nullopt;
    return *since + *config.grace;
}

// The generation is named, so a request that is repeated cannot end the one that follows.
Answered MachineState::restart_for(Time now, const std::string& by, Generation generation) {
    if (const std::string why = why_not_now(); !why.empty()) return {Answer::again, why};
    if (stop.is_asked() || end.is_decided())
        return {Answer::refused, "the job is ending: " + why_it_ends()};
    if (!any_generation()) return {Answer::refused, "there is no generation yet"};
    if (generation > newest())
        return {Answer::refused,
                "there is no " + to_text(generation) + "; the newest is " + to_text(newest())};
    if (generation < newest())
        return {Answer::already,
                to_text(generation) + " has ended; " + to_text(newest()) + " followed"};
    if (!holding())
        return {Answer::already, to_text(newest()) + " does not run; the next one is being made"};
    interrupt(now, {{}, "restarted by " + by + " with ddpctl"}, Note::Level::warn,
              RestartCause::planned);
    return {Answer::done, to_text(generation) + " ends; the next one follows"};
}

// Taking a node out must leave a job that can go on.
Answered MachineState::drain_for(Time now, const std::string& by, const std::string& node) {
    const std::string host = host_of(node);
    if (const std::string why = why_not_now(); !why.empty()) return {Answer::again, why};
    if (!is_known(host)) return {Answer::unknown_node, "no node of this job is called " + host};
    if (record.is_drained(host))
        return {Answer::already, "node " + host + " has been taken out already"};
    if (stop.is_asked() || end.is_decided())
        return {Answer::refused, "the job is ending: " + why_it_ends()};
    if (const int left = nodes_without(host); left < limits().min_nodes)
        return {Answer::refused,
                "without " + host + " this job has " + std::to_string(left) + " of its " +
                    plural_of(limits().order) + ", and the job needs " +
                    std::to_string(limits().min_nodes) +
                    " (--nnodes=MIN:MAX; ddpctl limits --min-nodes sets another number)"};
    record.drain(host);
    const std::string sentence = "node " + host + " was taken out by " + by + " with ddpctl";
    const bool member =
        holding() && std::ranges::any_of(held()->assignment.members, [&](const Member& each) {
            return host_of(each.node.name) == host;
        });
    if (member)
        interrupt(now, {{}, sentence}, Note::Level::warn, RestartCause::planned);
    else
        note(Note::Level::warn, sentence);
    return {Answer::done,
            "node " + host +
                (member ? " leaves; the job goes on without it"
                        : " gets no place in a generation any more; if the leader is lost before "
                          "the next generation, ask again")};
}

// The generation that runs goes on as it is: its membership is in the ledger, and ending it would
// cost work that nobody has asked to lose.
Answered MachineState::limits_for(Time now, const std::string& by, const OperatorLimits& asked) {
    if (single() && (asked.min_nodes || asked.max_nodes))
        return {Answer::refused,
                "a job of one node (--nnodes=1) cannot have more; it would have to be started with "
                "--nnodes=MIN:MAX"};
    if (const std::string why = why_not_now(); !why.empty()) return {Answer::again, why};
    if (stop.is_asked() || end.is_decided())
        return {Answer::refused, "the job is ending: " + why_it_ends()};
    LimitChange change = decide_limits(
        asked, {.hold = limits(), .here = nodes_without({}), .restarts_used = record.restarts()});
    if (change.what == LimitChange::What::refused) return {Answer::refused, change.sentence};
    if (change.what == LimitChange::What::holds_already) return {Answer::already, change.sentence};
    change.to.by = by;
    facts.asked(record.set_limits(change.to, now));
    limits_have_changed();
    note(Note::Level::warn, by + " has set limits with ddpctl: " + change.sentence);
    // The next leader has to know them.
    for (auto& [id, node] : roster.nodes()) send_ack(now, node, true);
    return {Answer::done,
            "from now on: " + change.sentence +
                (holding() ? "; " + to_text(newest()) + " goes on as it is (ddpctl restart ends it)"
                           : "")};
}

void MachineState::limits_have_changed() {
    gathering.fewer_may_be_enough();
    late.look_anew();
}

// A leader that was lost had promised them, and no entry has them.
void MachineState::hear_limits() {
    if (!record.hear_limits(facts.limits())) return;
    limits_have_changed();
    note(Note::Level::warn, "limits that " + facts.limits().limits.by +
                                " has set with ddpctl are taken over from the leader before: " +
                                described(limits(), record.restarts()));
}

// Between two answers of the ledger nobody knows which generation is the newest.
std::string MachineState::why_not_now() const {
    if (phase == Phase::reading) return "the leader reads the ledger";
    if (phase == Phase::creating || ledger.is_in_doubt())
        return "the next generation is being recorded";
    if (phase == Phase::ending || phase == Phase::closed) return "the end of the job is recorded";
    if (phase == Phase::gathering && any_generation() && !begins_allocation() && !claim.is_over())
        return "a new leader finds out how " + to_text(newest()) + " stands";
    return {};
}

int MachineState::nodes_without(const std::string& host) const {
    return static_cast<int>(std::ranges::count_if(roster.nodes(), [&](const auto& each) {
        const auto& [id, node] = each;
        return node.connected() && !roster.gone(id) && !unusable.contains(id.name) &&
               host_of(id.name) != host && !record.is_drained(id.name);
    }));
}

bool MachineState::is_known(const std::string& host) const {
    const auto is_here = [&](const std::string& name) { return host_of(name) == host; };
    return std::ranges::any_of(limits().order, is_here) ||
           std::ranges::any_of(roster.nodes(),
                               [&](const auto& each) { return is_here(each.first.name); });
}

// Why a node that is connected runs nothing.
std::string MachineState::parked(const NodeId& node) const {
    if (leaving.contains(node)) return {};
    if (record.is_drained(node.name))
        return "an operator has taken this node out; it waits for the end of the job";
    return parked_sentence(static_cast<int>(held()->assignment.members.size()), limits());
}

// A member with the --node-rank of a spare, if no place is free and both go on. The spare would
// wait for the end of a job that is not its own. A member whose process was started again is silent
// soon.
const NodeState* MachineState::has_its_rank(const NodeState& spare) const {
    if (!holding() || !spare.offer.node_rank || held()->lease.has(spare.id)) return nullptr;
    const std::vector<Member>& members = held()->assignment.members;
    if (static_cast<int>(members.size()) < limits().max_nodes) return nullptr;
    const auto same = std::ranges::find(members, spare.offer.node_rank,
                                        [](const Member& one) { return one.offer.node_rank; });
    const NodeState* member = same == members.end() ? nullptr : roster.find(same->node);
    const bool goes_on = member && member->connected() &&
                         member->beat_came >= spare.came + share(lease(), kNodeSilent);
    return goes_on ? member : nullptr;
}

std::string MachineState::one_rank(const NodeState& spare, const NodeState& member) const {
    return "node " + spare.id.name + " has --node-rank=" + std::to_string(*spare.offer.node_rank) +
           ", as has node " + member.id.name +
           ", which runs; two jobs need two ports, or each its own "
           "--rdzv-id; a spare has no --node-rank";
}

}  // namespace ddprun::rendezvous
