// Stops all workers as planned: who asked for it, what the nodes get, and whether the job goes back
// into Slurm's queue (PROTOCOL.md, rule 23). Part of the rendezvous machine.
#include "rendezvous/machine/machine_state.h"

namespace ddprun::rendezvous {

void MachineState::on_stop_asked(Time now, Session session, const StopAsked& asked) {
    const NodeState* node = roster.of(session);
    if (!node || phase == Phase::closed) return;
    if (stop.is_asked()) return withdraw_requeue(asked);
    if (phase == Phase::ending) return;
    if (asked.requeue && config.outside)
        note(Note::Level::warn,
             "a rendezvous outside the job cannot requeue it; let the batch script requeue it when "
             "ddprun exits with 75");
    begin_stop(now, asked, "stopped: " + asked.reason + " on node " + node->id.name);
    stop_all(now);
}

void MachineState::begin_stop(Time now, const StopAsked& asked, const std::string& sentence) {
    stop.begin(asked, now);
    snapshot.stops();
    Ending ending = ended_by_stop(asked.cause, asked.signal, sentence);
    ending.requeue = asked.requeue && !config.outside;
    end.decide(std::move(ending));
    note(Note::Level::info, sentence);
}

// The previous leader had sent this Stop to a node. All other nodes get it when this leader takes
// the generation over.
void MachineState::resume_stop(Time now, const Stop& told) {
    if (told.cause != StopCause::larger_world)
        begin_stop(now, {told.signal, told.reason, told.cause, told.left, told.requeue},
                   told.reason);
    else if (!claim.is_over())
        stop.regroup(told.reason);
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
