// Starts, watches and stops the workers of one generation. Part of the agent machine.
#include <algorithm>
#include <utility>

#include "agent/death/exit_report.h"
#include "agent/machine/machine_state.h"
#include "rendezvous/model/durations.h"
#include "rendezvous/model/node_name.h"

namespace ddprun::agent {
namespace {

// The last output lines of this number of failures are sent. An earlier failure than all others
// always sends its lines.
constexpr std::size_t kTailsTold = 4;

}  // namespace

void MachineState::start_workers(Time now, const rendezvous::Assigned& assigned, Time deadline) {
    const rendezvous::NodePlace& place = assigned.place;
    running.emplace(place);
    facts = rendezvous::GenerationFacts(place.generation);
    lease.run(place.generation, assigned.entry, deadline);
    phase = Phase::running;
    // The deadline reaches the keeper before the workers start, so no worker ever runs without one.
    effects.push_back(SetDeadline{deadline});
    if (place.has_store()) effects.push_back(OpenStore{place});
    effects.push_back(Spawn{place, job});
    if (config.stop.ask_job_end && request.asks_job_end_at() == kNever)
        request.ask_job_end_at(now + lease.lease());
}

rendezvous::WorkerOutcome MachineState::outcome_of(const WorkerNotStarted& event) const {
    rendezvous::WorkerOutcome outcome;
    outcome.local_rank = event.local_rank;
    outcome.rank = running->place.rank_offset + event.local_rank;
    outcome.exit_code = event.exit_code;
    outcome.sentence = "rank " + std::to_string(outcome.rank) + " (local " +
                       std::to_string(running->place.host().first_local_rank + event.local_rank) +
                       " on " + rendezvous::host_of(config.node.name) +
                       ") was not started: " + event.sentence;
    return outcome;
}

void MachineState::on_started(Time now, const WorkerStarted& event) {
    if (!is_running(event.generation) || !running->workers.started(now)) return;
    if (running->place.has_store()) running->headway.started(now);
    tell_soon(now);
}

void MachineState::on_not_started(Time now, const WorkerNotStarted& event) {
    if (is_running(event.generation)) worker_ended(now, outcome_of(event), now);
}

void MachineState::on_exited(Time now, const WorkerExited& event) {
    if (is_running(event.generation)) worker_ended(now, event.outcome, event.at);
}

void MachineState::worker_ended(Time now, rendezvous::WorkerOutcome outcome, Time at) {
    const bool last = running->workers.ended(outcome.local_rank, now);
    outcome.local_rank += running->place.host().first_local_rank;
    if (outcome.signal != 0) running->died_of.push_back(outcome.signal);
    // A worker that ends after the stop began does so because of the stop.
    const bool counts =
        outcome.failed() && (!running->stopping_since || at < *running->stopping_since);
    // Once one death is withheld, later ones wait too: their order decides which is the first
    // failure.
    const bool withhold = counts && phase == Phase::running &&
                          (!running->withheld.empty() ||
                           (config.stop.in_slurm && rendezvous::asks_to_stop(outcome.signal)));
    if (counts)
        pass_on({rendezvous::NewsKind::worker_lost, config.node.name, outcome.rank, 1,
                 outcome.exit_code, outcome.signal});
    if (withhold) {
        running->withheld.add(std::move(outcome), at, now);
    } else if (counts) {
        take_failure(now, std::move(outcome), at);
        if (phase == Phase::running) begin_stop(now, rendezvous::kTerminate, config.grace.restart);
    }
    // It has written its functions, as the end of a generation that hangs asks for.
    if (!counts && !outcome.stack.empty()) {
        outcome.hung = true;
        send(rendezvous::Report{.generation = running->place.generation, .outcomes = {outcome}});
    }
    if (last && running->withheld.empty()) sweep(now);
}

void MachineState::take_failure(Time now, rendezvous::WorkerOutcome outcome, Time at) {
    const rendezvous::FirstFailure& failure = facts.failure();
    const bool first = !failure || at < failure.at();
    // A broken collective makes all workers of a node fail at once. Their outputs would make the
    // messages large without saying more.
    if (!first && failure.count() >= kTailsTold) outcome.tail.clear();
    facts.failed(config.node.name, outcome, at);
    outcome.age = now - at;
    send(rendezvous::Report{.generation = running->place.generation, .outcomes = {outcome}});
}

// No stop came in time, or another cause ended the generation: these deaths were failures.
void MachineState::judge_withheld(Time now) {
    if (!running || running->withheld.empty()) return;
    for (auto& [outcome, at] : running->withheld.take()) take_failure(now, std::move(outcome), at);
    if (phase == Phase::running) begin_stop(now, rendezvous::kTerminate, config.grace.restart);
    if (running->workers.have_ended()) sweep(now);
}

void MachineState::begin_stop(Time now, int signal, Duration grace) {
    phase = Phase::stopping;
    if (!running->stopping_since) running->stopping_since = now;
    if (running->sweep.is_gentle()) {
        running->sweep.hurry(now, grace + config.grace.killed);
        effects.push_back(HurrySweep{grace});
    }
    if (running->sweep.is_under_way()) return;
    // A stop is under way already. A second reason can only make the kill earlier.
    if (running->ladder) return running->ladder->kill_at(now + grace);
    running->ladder = StopLadder(signal, now, grace);
    tell_stopping(signal, grace);
    climb(now);
}

void MachineState::climb(Time now) {
    if (!running || !running->ladder || running->sweep.is_under_way()) return;
    const std::optional<int> signal = running->ladder->step(now);
    if (signal == kKill)
        sweep(now);
    else if (signal)
        effects.push_back(
            SignalWorkers{*signal, running->hint, true,
                          has_hung() ? running->unread : std::vector<std::int64_t>()});
}

// SIGKILL for everything that is left, descendants too. Only the keeper can verify that nothing is
// left. After a success what is left has time first.
void MachineState::sweep(Time now) {
    const bool gentle = phase == Phase::running;
    const Duration time =
        gentle ? config.grace.helpers.value_or(Duration{}) + config.grace.final_stop : Duration{};
    if (!running->sweep.begin(now, config.grace.killed + time, gentle)) return;
    say_signalled_by_slurm();
    effects.push_back(Sweep{running->place.generation, facts.reach() >= rendezvous::Reach::met});
    // The leader must not take ranks that have ended for ranks that hang.
    if (gentle && time > config.grace.final_stop) tell_soon(now);
}

// ddprun has sent them another signal.
void MachineState::say_signalled_by_slurm() {
    const auto count = std::ranges::count(running->died_of, running->named_signal);
    if (running->named_signal == 0 || count == 0) return;
    const std::string name = signal_name(running->named_signal);
    note(Note::Level::warn,
         std::to_string(count) + " of " + std::to_string(running->workers.count()) +
             " workers of this node died of " + name +
             " before they could save: Slurm has sent it to them as well (proctrack/linuxproc); "
             "leave --signal out of the batch script, or use --signal=B:" +
             name.substr(3) + "@… with a trap");
}

void MachineState::look_for_stuck(Time now) {
    if (!running) return;
    if (const auto since = running->sweep.look(now))
        effects.push_back(LookForStuck{running->place.generation, *since});
}

// The node stays connected to hear the end of the job, since Slurm takes an early exit for a failed
// task. Its vow holds all the same: what is left has SIGKILL pending and runs no instruction any
// more.
void MachineState::on_cannot_kill(Time now, const CannotKill& event) {
    if (!is_running(event.generation) || !running->sweep.is_under_way() ||
        running->sweep.is_stuck())
        return;
    running->sweep.cannot_kill(event.sentence);
    note(Note::Level::error, "this node is unusable: " + event.sentence);
    if (ending) return leave(now, *ending);
    send(rendezvous::Unusable{event.sentence});
}

// Nothing of the generation is left here. After success or a planned stop the node stays a member,
// so that its vow does not end the generation for workers that still run elsewhere. `over` in an
// Ack releases it.
void MachineState::on_swept(Time now, const Swept& event) {
    if (!is_running(event.generation) || running->sweep.is_stuck()) return;
    running->workers.all_are_gone();
    const bool stays =
        phase == Phase::running || (running->planned_stop && phase == Phase::stopping);
    if (stays && !ending && now < deadline()) {
        phase = Phase::waiting;
        running->sweep.is_done();
        running->ladder.reset();
        return beat(now);
    }
    cleared(now);
}

// The generation has ended on this node and its workers are gone. The node says its vow with a new
// offer, since the next generation's store has another port.
void MachineState::cleared(Time now) {
    past = {running->place.generation, running->stopping_since.value_or(now),
            std::min(running->workers.all_ended_at(), now), now};
    past.stopped = std::max(past.stopped, past.told);
    lease.stopped();
    running.reset();
    phase = Phase::joining;
    effects.push_back(CloseStore{});
    effects.push_back(SetDeadline{kNever});
    if (ending) return leave(now, *ending);
    rendezvous::Join join = next_join(now);
    if (link.is_welcomed()) join.facts.failures.clear();  // this leader was told each at once
    send(std::move(join));
}

// The runner kills it and everything below it. KeeperDied follows; until then this is a sweep,
// which finds out if a process hangs in the kernel.
void MachineState::on_keeper_frozen(Time now) {
    keeper_alive = false;
    if (running) begin_stop(now, kKill, Duration::zero());
}

// The workers die with their keeper, so the generation cannot go on. The runner has killed what was
// left and starts a new keeper.
void MachineState::on_keeper_died(Time now, const std::string& how) {
    keeper_alive = false;
    note(Note::Level::error, "the keeper " + how + "; the workers of this node died with it");
    if (!running) return;
    facts.interrupt({config.node.name, "the keeper of node " + config.node.name + ' ' + how, true},
                    now);
    cleared(now);
}

// No failure of the program: the next generation starts cold, and no restart is used up.
void MachineState::on_warm_start_differs(Time now, const WarmStartDiffers& event) {
    if (!is_running(event.generation)) return;
    if (phase == Phase::running) {
        const int rank = running->place.rank_offset + event.local_rank;
        facts.interrupt({{},
                         "a cold start of rank " + std::to_string(rank) + " on " +
                             rendezvous::host_of(config.node.name) +
                             " would differ from its warm start (" + event.why + ")",
                         false},
                        event.at);
        begin_stop(now, kKill, Duration::zero());
    }
    if (running->workers.ended(event.local_rank, now)) sweep(now);
}

// No worker can run here any more. The node stays connected to hear the end of the job.
void MachineState::on_no_keeper(const std::string& why) {
    config.unusable = "no new keeper can be started: " + why;
    note(Note::Level::error, config.unusable);
    send(rendezvous::Unusable{config.unusable});
}

void MachineState::on_progress(Time now, const WorkerProgress& event) {
    if (!is_running(event.generation)) return;
    running->workers.saving(event.local_rank, event.saving);
    facts.saving(running->workers.saving());
    if (facts.saved(event.snapshot, now)) tell_soon(now);
    if (event.snapshot_took > Duration{}) request.snapshot_took(event.snapshot_took);
    running->workers.progressed(event.local_rank, event.step, now);
    if (!event.not_finite.empty()) say_not_finite(event);
    if (running->place.rank_offset + event.local_rank == 0)
        if (const auto again = begun_again.reported(event.generation, event.first_step, event.step,
                                                    event.snapshot))
            note(Note::Level::warn, *again);
    got_to(now, rendezvous::Reach::progressed);
    if (config.limits.hang_timeout > Duration{}) tell_soon(now);
}

// Once in a generation: the values after it follow from it. It ends nothing, for a program may skip
// such steps.
void MachineState::say_not_finite(const WorkerProgress& event) {
    if (std::exchange(running->said_not_finite, true)) return;
    const std::int64_t before = running->workers.step_of(event.local_rank);
    const std::string at = event.step >= 0 ? " at step " + std::to_string(event.step)
                           : before >= 0   ? " after step " + std::to_string(before)
                                           : "";
    note(Note::Level::warn,
         "rank " + std::to_string(running->place.rank_offset + event.local_rank) + " (local " +
             std::to_string(running->place.host().first_local_rank + event.local_rank) +
             ") has reported " + event.not_finite + at + "; it is said once in a generation");
}

// Schedules a Beat in a job of one node. In other jobs the next regular Beat carries the news.
void MachineState::tell_soon(Time now) {
    if (lease.next_beat() == kNever && tell_at == kNever)
        tell_at = now + share(lease.lease(), rendezvous::kBeatPeriod);
}

rendezvous::Marks MachineState::marks(Time now) const {
    using enum rendezvous::RestartPhase;
    rendezvous::Marks marks{running ? running->place.generation : past.generation, {}};
    const auto add = [&](rendezvous::RestartPhase phase, Time at) {
        if (at <= now) marks.passed.push_back({phase, now - at});
    };
    if (running) {
        marks.passed = running->workers.marks(now);
    } else if (past.generation != kNoGeneration) {
        add(told, past.told);
        add(stopped, past.stopped);
        add(gone, past.gone);
    }
    return marks;
}

void MachineState::on_examine(const rendezvous::Examine& examine) {
    if (!is_running(examine.generation) || phase != Phase::running) return;
    ExamineWorkers effect{examine.generation, {}};
    const int first = running->place.rank_offset;
    for (const int rank : examine.ranks)
        if (rank >= first && rank < first + running->place.slots)
            effect.local_ranks.push_back(rank - first);
    effects.push_back(std::move(effect));
}

// What the workers do now goes before the answer, since the leader's question may have come from
// what they did seconds ago.
void MachineState::on_examined(Time now, const WorkersExamined& event) {
    if (!is_running(event.generation)) return;
    beat(now);
    running->unread = event.unread;
    rendezvous::Report report{event.generation, event.outcomes, event.recorded};
    for (rendezvous::WorkerOutcome& outcome : report.outcomes) {
        // The runner counts the workers of this ddprun; the leader and the user count ranks and the
        // workers of the host.
        outcome.rank = running->place.rank_offset + outcome.local_rank;
        outcome.local_rank += running->place.host().first_local_rank;
        outcome.hung = true;
    }
    send(std::move(report));
}

// A worker or a whole node has died, and the others wait for it: those that were asked to stop have
// called another collective in their handler, or never came to it. Nothing of theirs can be saved.
// Processes that are to write their functions get the time for it.
void MachineState::on_in_collectives(Time now, const WorkersInCollectives& event) {
    const bool lost_node = facts.interrupted() && !facts.interrupted()->what.node.empty();
    if (!is_running(event.generation) || phase != Phase::stopping || !running->ladder ||
        running->planned_stop || !(facts.failure() || lost_node) || has_hung() ||
        !running->ladder->waits_in_vain(now))
        return;
    note(Note::Level::info,
         "the workers of this node that still run wait in a collective for one that has died; "
         "killing them");
    climb(now);
}

void MachineState::on_still(Time now, const WorkersStill& event) {
    if (!is_running(event.generation)) return;
    running->workers.watched(event.still, event.pace);
    tell_soon(now);
}

// Every Ack carries the request, and a worker that removes the file has obeyed. Workers that are
// being stopped write their last snapshot anyway.
void MachineState::pass_on(Generation held, const rendezvous::SnapshotAsked& asked) {
    if (!is_running(held) || phase != Phase::running || asked.number <= running->snapshot_asked)
        return;
    running->snapshot_asked = asked.number;
    effects.push_back(AskSnapshot{{held, asked}});
    tell(SnapshotHint{held, asked});
}

void MachineState::on_contact(Time now, const StoreContact& event) {
    if (!is_running(event.generation)) return;
    if (running->workers.in_contact(now)) tell_soon(now);
    running->headway.in_contact(event.processes, now);
    got_to(now, running->headway.at(now));
}

// News is sent at once: a failure may follow immediately, and the restart depends on it.
void MachineState::got_to(Time now, rendezvous::Reach reach) {
    if (facts.reached(reach)) beat(now);
}

}  // namespace ddprun::agent
