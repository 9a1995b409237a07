// Stops all workers as planned: who asked for it, what the nodes get, and whether the job goes back
// into Slurm's queue (PROTOCOL.md, rule 23). Part of the rendezvous machine.
#include <algorithm>
#include <set>

#include "rendezvous/machine/machine_state.h"
#include "rendezvous/model/stop_sentences.h"

namespace ddprun::rendezvous {

void MachineState::on_stop_asked(Time now, Session session, const StopAsked& said) {
    const NodeState* node = roster.of(session);
    if (!node || phase == Phase::closed || leaving.contains(node->id)) return;
    StopAsked asked = said;
    std::string needed;
    if (asked.cause == StopCause::node_leaves) {
        if (phase == Phase::reading) return leaving.asks_early(session, said);
        needed = is_ending() ? "" : why_needed(node->id);
        if (!is_ending() && needed.empty())
            return leaving.add(node->id,
                               ended_by_stop(asked.cause, asked.signal,
                                             "node " + node->id.name + " leaves (" + asked.reason +
                                                 "); the job goes on without it"));
        asked.cause = StopCause::signal;
    }
    if (stop.is_asked()) return withdraw_requeue(asked);
    if (phase == Phase::ending) return;
    if (asked.requeue && config.outside)
        note(Note::Level::warn,
             "a rendezvous outside the job cannot requeue it; let the batch script requeue it when "
             "ddprun exits with 75");
    begin_stop(now, asked, asked.reason + " on node " + node->id.name + needed);
    stop_all(now);
}

// Why the job cannot go on without this node; empty: it can. Members that have not called a new
// leader yet count as here.
std::string MachineState::why_needed(const NodeId& node) const {
    std::set<NodeId> left;
    const auto stays = [&](const NodeId& id) {
        return id != node && !roster.gone(id) && !unusable.contains(id.name) &&
               !record.is_drained(id.name) && !leaving.contains(id);
    };
    for (const auto& [id, each] : roster.nodes())
        if (each.connected() && stays(id)) left.insert(id);
    if (!begins_allocation())
        for (const Member& member : top()->assignment.members)
            if (stays(member.node)) left.insert(member.node);
    if (single() || static_cast<int>(left.size()) < limits().min_nodes)
        return ", without which " + std::to_string(left.size()) + " of the " +
               std::to_string(limits().min_nodes) + " nodes that the job needs would be left";
    if (node != active.self.node) return {};
    if (begins_allocation()) return ", which leads, before the job has begun";
    return Successors::next(order(), node, roster) ? "" : ", which leads, and no other node can";
}

void MachineState::regroup(Time now, StopCause cause, const std::string& sentence) {
    stop.regroup(cause, sentence);
    facts.interrupt({{}, sentence}, now);
    record.ended(now, now);
    note_stop(sentence);
    stop_all(now);
}

// Nodes that leave: their generation makes room for one without them, and once they run nothing
// they get their end.
void MachineState::let_go(Time now) {
    if (is_ending() || phase == Phase::reading) return;
    for (const auto& [session, asked] : leaving.take_early()) on_stop_asked(now, session, asked);
    for (const NodeId& id : leaving.nodes()) {
        NodeState* node = roster.find(id);
        if (!node || !node->connected() || node->told_end || phase == Phase::creating) continue;
        if (holding() && held()->lease.has(id)) {
            if (!stop.is_under_way()) regroup(now, StopCause::node_leaves, leaving.sentence(id));
        } else if (id != active.self.node || the_others_run()) {
            node->told_end = true;
            send(*node->session, Finished{leaving.ending(id)});
        }
    }
}

// Whether the job runs without this node. Then another node takes the generation over as it is.
bool MachineState::the_others_run() const {
    return holding() && std::ranges::all_of(held()->assignment.members, [&](const Member& member) {
               const NodeState* node = roster.find(member.node);
               return node && node->beat.running == newest();
           });
}

void MachineState::begin_stop(Time now, StopAsked asked, const std::string& reason) {
    asked.reason = reason;
    stop.begin(asked, now);
    snapshot.stops();
    Ending ending = ended_by_stop(asked.cause, asked.signal, stopped(reason));
    ending.requeue = asked.requeue && !config.outside;
    end.decide(std::move(ending));
    note_stop(stopping(asked.cause, reason));
}

// Each member's agent reports the stop, with the time that its workers have. The leader reports it
// where the log beside its own contains no such line.
void MachineState::note_stop(const std::string& sentence) {
    const bool reported = holding() && held()->lease.has(active.self.node);
    if (!reported) note(Note::Level::info, sentence);
}

// Why the job ends, while it does.
std::string MachineState::why_it_ends() const {
    if (stop.is_asked()) return stop.reason();
    return end.is_decided() ? end.ending()->sentence : "its end is recorded";
}

// The previous leader had sent this Stop to a node. All other nodes get it when this leader takes
// the generation over.
void MachineState::resume_stop(Time now, const Stop& told) {
    if (ends_job(told.cause))
        begin_stop(now, {told.signal, told.reason, told.cause, told.left, told.requeue},
                   told.reason);
    else if (!claim.is_over())
        stop.regroup(told.cause, told.reason);
}

// A user who cancels the job wants it to end, no matter why it was stopping before.
void MachineState::withdraw_requeue(const StopAsked& asked) {
    if (asked.cause != StopCause::signal || asked.requeue || stop.is_requeueing() ||
        !end.requeues())
        return;
    end.withdraw_requeue();
    note(Note::Level::info,
         asked.reason + " came while the job was stopping; the job is not requeued");
}

std::optional<Stop> MachineState::stop_now(Time now) const {
    if (!holding()) return std::nullopt;
    return stop.told(now, held()->assignment.generation, end.ending());
}

void MachineState::stop_all(Time now) {
    const auto told = stop_now(now);
    if (!told) return;
    for (auto& [id, node] : roster.nodes())
        if (node.connected() && held()->lease.has(id)) send(*node.session, *told);
}

// Whether a stop may turn out to be the cause of the first failure. Then it is judged later.
bool MachineState::may_be_stop(Time now) {
    const FirstFailure& failure = facts.failure();
    const Time until = failure.at() + kSignalPatience;
    if (!config.in_slurm || !asks_to_stop(failure.outcome().signal) || now >= until) return false;
    wake_at(until);
    return true;
}

}  // namespace ddprun::rendezvous
