// The agreed stop and what comes of it: who asked, what the nodes are told, whether the job goes back
// into the queue. A part of the rendezvous machine.
#include "rendezvous/machine/machine_state.h"

namespace ddprun::rendezvous {

void Machine::State::on_stop_asked(Time now, Session session, const StopAsked& asked) {
    const NodeState* node = roster.of(session);
    if (!node || phase == Phase::closed) return;
    if (stop) return withdraw_requeue(asked);
    if (phase == Phase::ending) return;
    if (asked.requeue && config.outside)
        note(Note::Level::warn,
             "a rendezvous outside the job cannot requeue it: let the batch script do so when "
             "ddprun exits with 75");
    begin_stop(now, asked, "stopped: " + asked.reason + " on node " + node->id.name);
    stop_all(now);
}

void Machine::State::begin_stop(Time now, const StopAsked& asked, const std::string& sentence) {
    stop = asked;
    stop_since = now;
    const bool plain = asked.cause == StopCause::signal;
    ending = Ending{.verdict = plain ? Verdict::user_signal : Verdict::work_left,
                    .code = plain ? 128 + asked.signal : kWorkLeft,
                    .sentence = sentence,
                    .first_failure = {},
                    .first_failure_node = {},
                    .consequences = 0};
    ending->requeue = asked.requeue && !config.outside;
    note(Note::Level::info, sentence);
}

// The leader before had told it to a node; all others hear it when the generation is taken over.
void Machine::State::resume_stop(Time now, const Stop& told) {
    if (told.cause != StopCause::larger_world)
        begin_stop(now, {told.signal, told.reason, told.cause, told.left, told.requeue},
                   told.reason);
    else if (over < newest())
        regrouping = told.reason;
}

// Who cancels the job means it, whatever has stopped it before.
void Machine::State::withdraw_requeue(const StopAsked& asked) {
    if (asked.cause != StopCause::signal || asked.requeue || requeueing || !ending ||
        !ending->requeue)
        return;
    ending->requeue = false;
    note(Note::Level::info, asked.reason + " came while the job was stopping: it is not requeued");
}

std::optional<Stop> Machine::State::stop_now(Time now) const {
    if (!holding()) return std::nullopt;
    Stop told{.generation = held->assignment.generation, .signal = kTerminate, .reason = {}};
    if (stop) {
        told.signal = stop->signal;
        told.reason = ending->sentence;
        told.cause = stop->cause;
        if (stop->left) told.left = *stop->left - (now - stop_since);
        told.requeue = ending->requeue;
    } else if (regrouping) {
        told.reason = *regrouping;
        told.cause = StopCause::larger_world;
    } else {
        return std::nullopt;
    }
    return told;
}

void Machine::State::stop_all(Time now) {
    const auto told = stop_now(now);
    if (!told) return;
    for (auto& [id, node] : roster.nodes())
        if (node.connected() && held->lease.has(id)) send(*node.session, *told);
}

void Machine::State::on_requeued(Time now) {
    if (!top || top->kind != LedgerEntry::Kind::end || phase == Phase::closed) return;
    const bool requeue = ending && ending->requeue;
    ending = top->ending;
    ending->requeue &= requeue;
    close(now);
}

// Whether the first failure may turn out to be a stop's: then it is looked at again later.
bool Machine::State::may_be_stop(Time now) {
    const FirstFailure& failure = facts.failure();
    const Time until = failure.at() + kSignalPatience;
    if (!config.in_slurm || !asks_to_stop(failure.outcome().signal) || now >= until) return false;
    wake_at(until);
    return true;
}

}  // namespace ddprun::rendezvous
