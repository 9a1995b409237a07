// The link to the leader, the lease, and stops: the core of the agent machine (machine.h).
#include "agent/machine/machine.h"

#include <algorithm>

#include "agent/death/exit_report.h"
#include "agent/machine/machine_state.h"
#include "base/overload.h"
#include "rendezvous/model/durations.h"
#include "rendezvous/model/stop_sentences.h"

namespace ddprun::agent {
namespace {

using rendezvous::Ending;

// The end of a node that stops alone, without a leader to decide it.
Ending stopped_by(const rendezvous::StopAsked& asked) {
    return rendezvous::ended_by_stop(asked.cause, asked.signal, rendezvous::stopped(asked.reason));
}

}  // namespace

const char* to_string(Phase phase) {
    switch (phase) {
        case Phase::joining:
            return "joining";
        case Phase::running:
            return "running";
        case Phase::waiting:
            return "waiting";
        case Phase::stopping:
            return "stopping";
        case Phase::finished:
            return "finished";
    }
    return "unknown";
}

Machine::Machine(MachineConfig config, Time now)
    : state_(std::make_unique<MachineState>(std::move(config), now)) {}
Machine::~Machine() = default;
Machine::Machine(Machine&&) noexcept = default;
Machine& Machine::operator=(Machine&&) noexcept = default;

Effects Machine::step(Time now, const Event& event) {
    MachineState& s = *state_;
    s.effects.clear();
    if (s.phase == Phase::finished) return {};
    // Rendezvous/PROTOCOL.md, rule 4: first, since the keeper has killed by now.
    s.expire(now);
    s.lease.steps(now);
    std::visit(Overload{[&](const Started&) { s.connect(now); },
                        [&](const LinkUp& e) { s.link_up(e); },
                        [&](const LinkLost& e) { s.link_lost(now, e.sentence); },
                        [&](const MessageCame& e) { s.on_message(now, e.message); },
                        [&](const WorkerStarted& e) { s.on_started(now, e); },
                        [&](const WorkerNotStarted& e) { s.on_not_started(now, e); },
                        [&](const WorkerLost& e) { s.on_lost(e); },
                        [&](const WorkerExited& e) { s.on_exited(now, e); },
                        [&](const Swept& e) { s.on_swept(now, e); },
                        [&](const CannotKill& e) { s.on_cannot_kill(now, e); },
                        [&](const KeeperFrozen&) { s.on_keeper_frozen(now); },
                        [&](const KeeperDied& e) { s.on_keeper_died(now, e.how); },
                        [&](const WarmStartDiffers& e) { s.on_warm_start_differs(now, e); },
                        [&](const KeeperBack&) { s.keeper_alive = true; },
                        [&](const NoKeeper& e) { s.on_no_keeper(e.why); },
                        [&](const WorkerProgress& e) { s.on_progress(now, e); },
                        [&](const WorkersExamined& e) { s.on_examined(now, e); },
                        [&](const WorkersStill& e) { s.on_still(now, e); },
                        [&](const WorkersInCollectives& e) { s.on_in_collectives(now, e); },
                        [&](const StoreContact& e) { s.on_contact(now, e); },
                        [&](const LedgerFound& e) { s.on_ledger_found(e.found); },
                        [&](const SignalCame& e) { s.on_signal(now, e.signal); },
                        [&](const JobEndKnown& e) { s.on_job_end(now, e.end); },
                        [&](const Tick&) {}},
               event);
    if (s.phase != Phase::finished) s.on_tick(now);
    return std::move(s.effects);
}

Time Machine::next_deadline() const { return state_->next_deadline(); }

Snapshot Machine::snapshot() const {
    const MachineState& s = *state_;
    return {.phase = s.phase,
            .running = s.lease.running(),
            .floor = s.lease.floor(),
            .seen = s.lease.seen(),
            .deadline = s.lease.deadline(),
            .workers_alive = s.running ? s.running->workers.living() : 0};
}

const rendezvous::GenerationFacts& Machine::facts() const { return state_->facts; }

void MachineState::on_message(Time now, const rendezvous::ToNode& message) {
    std::visit(Overload{[&](const rendezvous::Welcome& m) { on_welcome(now, m); },
                        [&](const rendezvous::Ack& m) { on_ack(now, m); },
                        [&](const rendezvous::Assigned& m) { on_assigned(now, m); },
                        [&](const rendezvous::Parked& m) {
                            link.learn(m.order);
                            if (!m.sentence.empty()) note(Note::Level::info, m.sentence);
                        },
                        [&](const rendezvous::Elsewhere& m) { on_elsewhere(now, m); },
                        [&](const rendezvous::Stop& m) { on_stop(now, m); },
                        [&](const rendezvous::Examine& m) { on_examine(m); },
                        [&](const rendezvous::Finished& m) { leave(now, m.ending); },
                        [&](const rendezvous::Refused& m) { on_refused(now, m); },
                        // Answers to calls of the service and of the store.
                        [](const rendezvous::Standing&) {}, [](const rendezvous::Owners&) {}},
               message);
}

void MachineState::on_welcome(Time now, const rendezvous::Welcome& welcome) {
    lease.welcomed(now, welcome);
    // A node belongs to a job once it has heard of an entry. After that it keeps the job, so that
    // the service can refuse it when another job has its run id.
    if (lease.seen() == kNoEntry) job = welcome.job;
    link.welcomed(welcome);
    // Unusable comes before the Join: after a Join this node could become a member. It joins only
    // to hear the end.
    if (!config.unusable.empty()) send(rendezvous::Unusable{config.unusable});
    send(next_join(now));
    if (request.asked()) tell_stop(now);
    if (!running) return;
    if (running->sweep.is_stuck()) send(rendezvous::Unusable{running->sweep.stuck()});
}

void MachineState::on_ack(Time now, const rendezvous::Ack& ack) {
    const auto result = lease.ack(now, ack);
    if (!result.accepted) return;
    heard_leader();
    if (ack.facts) on_facts(now, *ack.facts);
    if (ack.news) on_news(*ack.news);
    if (ack.snapshot) pass_on(ack.held, *ack.snapshot);
    // The next leader wants to know until when this one lived (facts.led), so only the leader that
    // holds the generation counts.
    if (ack.held != kNoGeneration && ack.held == facts.generation()) holder = lease.leader();
    if (holder == lease.leader()) facts.led_at(now);
    // The keeper gets every new deadline, since it must kill even if this process is frozen.
    if (result.deadline_moved) effects.push_back(SetDeadline{lease.deadline()});
    bool at_once = result.beat_now;
    // Over. A node that waits for others is free at once; one with workers stops them, then vows.
    if (running && ack.over >= running->place.generation) {
        if (phase == Phase::waiting)
            cleared(now);
        else if (phase == Phase::running || running->planned_stop) {
            judge_withheld(now);
            begin_stop(now, 15, config.grace.restart);
        }
    } else if (!running) {
        at_once |= lease.raise_floor(ack.over);
    }
    if (at_once) beat(now);
}

void MachineState::on_facts(Time now, const rendezvous::Facts& said) {
    // A node with workers keeps the facts of its own generation. An idle node follows the newest
    // one it hears of.
    if (!running && said.generation > facts.generation())
        facts = rendezvous::GenerationFacts(said.generation);
    facts.hear(said, now);
}

// Conditions of rendezvous/PROTOCOL.md, rule 6. An Assigned that fails the first check is old or a
// repetition and gets no answer. If only the deadline or the keeper prevents the start, the node
// vows never to run the generation, so that the others need not wait for the lease.
void MachineState::on_assigned(Time now, const rendezvous::Assigned& assigned) {
    const Generation g = assigned.place.generation;
    if (assigned.entry < lease.seen() || running || ending || g <= lease.floor()) return;
    const auto deadline = lease.granted_until(assigned.beat, assigned.remaining);
    lease.see(assigned.entry);
    stood_still = {};
    if (!deadline || now >= *deadline || !keeper_alive) {
        lease.raise_floor(g);  // never to be run here
        note(Note::Level::warn,
             "generation " + std::to_string(g.value) + " cannot start here: " +
                 (keeper_alive ? "its lease has expired" : "the keeper is being replaced"));
        return beat(now);
    }
    link.learn(assigned.order);
    start_workers(now, assigned, *deadline);
    beat(now);
}

// A planned stop: the node stays a member until all have stopped, and failures count no more.
void MachineState::on_stop(Time now, const rendezvous::Stop& stop) {
    if (!is_running(stop.generation) || phase != Phase::running) return;
    request.answered();
    running->planned_stop = true;
    facts.stopping(stop, now);
    running->withheld.forget();  // it was this that they died of
    const std::optional<Duration> left =
        stop.left || !config.stop.job_end ? stop.left : std::optional(*config.stop.job_end - now);
    const Duration grace =
        grace_of(stop.cause, left, config.grace.final_stop, config.stop, request.snapshot_took());
    const bool typed = config.at_terminal && request.asked() && stop.signal == kInterrupt;
    note(Note::Level::info, stopping(stop.cause, stop.reason) + "; the workers have " +
                                to_text(grace) + " to end" +
                                (typed ? "; another Ctrl-C kills them at once" : ""));
    const int number = signal_for_workers(stop.cause, stop.signal, config.stop);
    if (stop.cause == rendezvous::StopCause::named_signal && number != stop.signal)
        running->named_signal = stop.signal;
    running->hint =
        StopHint{running->place.generation, stop.cause, stop.reason, number, grace, stop.requeue};
    begin_stop(now, number, grace);
    if (running->workers.have_ended()) sweep(now);
}

// All nodes stop together, so this node tells the leader, or the next leader once it is found. A
// node that has no leader and looks for none stops alone.
void MachineState::on_signal(Time now, int number) {
    if (std::ranges::find(config.passed_on, number) != config.passed_on.end())
        return pass_on(number);
    // At a terminal a second Ctrl-C means: do not wait. Slurm repeats signals without this meaning.
    if (request.asked() && number == kInterrupt && config.at_terminal) return kill_now(now);
    ask_stop(now, stop_by_signal(number, config.stop, now));
}

void MachineState::ask_stop(Time now, rendezvous::StopAsked stop) {
    if (ending || !request.would_take(stop)) return;
    const bool first = !request.asked(), by_signal = stop.signal != 0;
    request.take(std::move(stop));
    if (!link.is_welcomed() && !link.call() && by_signal)
        return leave(now, stopped_by(*request.asked()));
    // The leader's node leaves when the job runs without it; that may take longer.
    const bool leads_on = leads() && request.asked()->cause == rendezvous::StopCause::node_leaves;
    if (by_signal && first && !leads_on)
        request.await_answer(now + share(lease.lease(), rendezvous::kSignalAnswered));
    if (link.is_welcomed()) tell_stop(now);
}

void MachineState::tell_stop(Time now) {
    const auto& end = config.stop.job_end;
    send(request.with_time_left(end ? std::optional(*end - now) : std::nullopt));
}

// Asks for a stop when the job's time limit is near. If no variable gives the limit, the leader's
// node asks Slurm for it.
void MachineState::watch_job_end(Time now) {
    if (now >= stop_due()) ask_stop(now, stop_by_time_limit(config.stop, now));
    if (now < request.asks_job_end_at() || !leads()) return;
    request.ask_job_end_at(now + kAskJobEndAgain);
    effects.push_back(AskJobEnd{});
}

Time MachineState::stop_due() const {
    if (request.asked() || ending || !running) return kNever;
    return stop_due_at(config.stop, request.snapshot_took());
}

void MachineState::on_job_end(Time now, std::optional<Time> end) {
    // An end that has moved, or that of a step, moves with it what there was at the start.
    if (end && config.stop.job_end && config.stop.first_left)
        *config.stop.first_left += *end - *config.stop.job_end;
    config.stop.job_end = end;
    note(Note::Level::debug, end ? "squeue reports " + to_text(*end - now) + " until the time limit"
                                 : "squeue reports no time limit");
    if (end && !config.stop.first_left) config.stop.first_left = *end - now;
}

// Every node has got this signal, or only this one was meant: it goes to this node's workers.
void MachineState::pass_on(int number) {
    const bool to_somebody = running && !running->sweep.is_under_way() && phase != Phase::waiting;
    note(Note::Level::info,
         signal_name(number) + (to_somebody ? " is passed on to the workers of this node"
                                            : " is ignored: no worker runs on this node"));
    if (to_somebody) effects.push_back(SignalWorkers{.signal = number, .stops = false});
}

void MachineState::kill_now(Time now) {
    if (!running || (running->sweep.is_under_way() && !running->sweep.is_gentle())) return;
    note(Note::Level::warn, "interrupted again: killing the workers");
    begin_stop(now, kKill, Duration::zero());
}

// Exits with this result as soon as no worker runs here.
void MachineState::leave(Time now, Ending with) {
    if (!ending) ending = std::move(with);
    request.answered();
    if (!running || running->sweep.is_stuck()) {
        // What is stuck has SIGKILL pending anyway. Without a deadline the keeper does not take
        // this process for frozen while it exits.
        if (running) effects.push_back(SetDeadline{kNever});
        send(rendezvous::Leave{ending->sentence});
        effects.push_back(Exit{*ending});
        phase = Phase::finished;
    } else if (phase == Phase::running) {
        begin_stop(now,
                   request.asked() && request.asked()->signal != 0 ? request.asked()->signal
                                                                   : rendezvous::kTerminate,
                   config.grace.final_stop);
    } else if (phase == Phase::waiting) {
        cleared(now);
    }
}

// The lease has passed. The keeper kills at this moment too; whichever is first, no worker runs on.
void MachineState::expire(Time now) {
    if (!running || now < deadline() || running->sweep.is_under_way()) return;
    const std::string generation = "generation " + std::to_string(running->place.generation.value);
    // Nothing has changed since the last step: how late is this one?
    const Duration late = now - next_deadline();
    stood_still = late > share(lease.lease(), rendezvous::kStall) ? late : Duration{};
    const bool stood = stood_still > Duration{};
    if (stood)
        note(Note::Level::warn, "this node stood still for " + to_text(stood_still) +
                                    " and the lease of " + generation +
                                    " expired meanwhile; killing its workers");
    else
        note(Note::Level::warn,
             "the lease of " + generation +
                 " expired without an answer from the rendezvous; killing its workers");
    if (!running->stopping_since)
        running->stopping_since = deadline();  // who ends after it ends because of it
    // After an expired lease this node is no member any more, so it must not wait for the others.
    running->planned_stop = false;
    // A leader whose host is lost is named by nobody else.
    std::string why = "the lease has expired on node " + config.node.name;
    if (stood)
        why += ", which stood still for " + to_text(stood_still);
    else if (!holder.name.empty() && holder != config.node && facts.led() > kLongAgo)
        why += "; its leader, node " + holder.name + ", was last heard " +
               to_text(std::max(Duration{}, deadline() - facts.led())) + " before";
    facts.interrupt({{}, why, false}, deadline());
    judge_withheld(now);
    phase = Phase::stopping;
    sweep(now);
}

void MachineState::on_tick(Time now) {
    climb(now);
    look_for_stuck(now);
    if (running && phase == Phase::running) got_to(now, running->headway.at(now));
    if (running && now >= running->withheld.judged_at()) judge_withheld(now);
    watch_job_end(now);
    if (now >= request.answer_by()) leave(now, stopped_by(*request.asked()));
    if (phase == Phase::finished) return;
    check_link(now);
    if (now >= link.calls_at()) place_call(now);
    if (link.is_welcomed() && now >= std::min(lease.next_beat(), tell_at)) beat(now);
}

// The earliest time at which on_tick() or expire() has something to do. Each condition here mirrors
// one there; a missing one would let the machine sleep through a deadline.
Time MachineState::next_deadline() const {
    if (phase == Phase::finished) return kNever;
    Time next = std::min({request.answer_by(), link.calls_at(), stop_due()});
    if (leads()) next = std::min(next, request.asks_job_end_at());
    if (link.is_welcomed()) next = std::min(next, tell_at);
    if (link.is_welcomed() && lease.next_beat() != kNever) {
        next = std::min({next, lease.next_beat(),
                         lease.silent_since() + share(lease.lease(), rendezvous::kLeaderSilent)});
    }
    if (running) {
        next = std::min({next, running->sweep.looks_at(), running->withheld.judged_at()});
        if (!running->sweep.is_under_way()) next = std::min(next, deadline());
        if (running->ladder && !running->sweep.is_under_way())
            next = std::min(next, running->ladder->next_deadline());
        if (phase == Phase::running) next = std::min(next, running->headway.more_at(facts.reach()));
    }
    return next;
}

rendezvous::Beat MachineState::next_beat(Time now) {
    rendezvous::Beat beat = lease.beat(now);
    tell_at = kNever;
    beat.marks = marks(now);
    beat.stood_still = stood_still;
    if (running) {
        beat.reach = facts.reach();
        beat.snapshot = facts.snapshot();
        running->workers.tell(beat, now);
        beat.complete = phase == Phase::waiting;
    }
    return beat;
}

rendezvous::Join MachineState::next_join(Time now) {
    const bool heard = lease.seen() != kNoEntry;
    return {config.offer, next_beat(now), 0, heard ? job : 0, facts.all(now)};
}

void MachineState::beat(Time now) { send(next_beat(now)); }

}  // namespace ddprun::agent
