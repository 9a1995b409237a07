// Starting, watching and stopping the workers of one generation: the other half of the agent
// machine.
#include <algorithm>
#include <utility>

#include "agent/machine/machine_state.h"
#include "rendezvous/model/node_name.h"
#include "rendezvous/rules/hang.h"

namespace ddprun::agent {
namespace {

// A worker that never reports progress counts as progressing when it has lived so long after all
// were in contact.
constexpr auto kLifeAfterContact = std::chrono::seconds{60};

// Of a node's failures, those whose last lines travel; and those of one that was earlier than all.
constexpr std::size_t kTailsTold = 4;

}  // namespace

void Machine::State::start_workers(Time now, const rendezvous::Assigned& assigned, Time deadline) {
    const rendezvous::NodePlace& place = assigned.place;
    running = Running{};
    running->place = place;
    running->workers.resize(static_cast<std::size_t>(place.slots));
    facts = rendezvous::GenerationFacts(place.generation);
    lease.run(place.generation, assigned.entry, deadline);
    phase = Phase::running;
    effects.push_back(SetDeadline{deadline});
    if (place.has_store()) effects.push_back(OpenStore{place});
    effects.push_back(Spawn{place});
    if (config.stop.ask_job_end && ask_job_end_at == kNever) ask_job_end_at = now + lease.lease();
}

rendezvous::WorkerOutcome Machine::State::outcome_of(const WorkerNotStarted& event) const {
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

void Machine::State::on_started(Time now, const WorkerStarted& event) {
    if (!is_running(event.generation) || ++running->started < running->place.slots) return;
    running->all_started = now;
    tell_soon(now);
}

void Machine::State::on_not_started(Time now, const WorkerNotStarted& event) {
    if (is_running(event.generation)) worker_ended(now, outcome_of(event), now);
}

void Machine::State::on_exited(Time now, const WorkerExited& event) {
    if (is_running(event.generation)) worker_ended(now, event.outcome, event.at);
}

void Machine::State::worker_ended(Time now, rendezvous::WorkerOutcome outcome, Time at) {
    ++running->exited;
    worker(outcome.local_rank).ended = true;
    outcome.local_rank += running->place.host().first_local_rank;
    // Who ends after the stop began does so because of it.
    const bool counts =
        outcome.failed() && (!running->stopping_since || at < *running->stopping_since);
    const bool withhold = counts && phase == Phase::running &&
                          (!running->withheld.empty() ||
                           (config.stop.in_slurm && rendezvous::asks_to_stop(outcome.signal)));
    if (withhold) {
        if (running->withheld.empty()) running->withheld_until = now + rendezvous::kSignalPatience;
        running->withheld.emplace_back(std::move(outcome), at);
    } else if (counts) {
        take_failure(now, std::move(outcome), at);
        if (phase == Phase::running) begin_stop(now, rendezvous::kTerminate, config.grace_restart);
    }
    if (running->exited < running->place.slots) return;
    running->all_ended = now;
    if (running->withheld.empty()) sweep(now);
}

void Machine::State::take_failure(Time now, rendezvous::WorkerOutcome outcome, Time at) {
    const rendezvous::FirstFailure& failure = facts.failure();
    const bool first = !failure || at < failure.at();
    if (!first && failure.count() >= kTailsTold) outcome.tail.clear();
    facts.failed(config.node.name, outcome, at);
    outcome.age = now - at;
    send(rendezvous::Report{.generation = running->place.generation, .outcomes = {outcome}});
}

// No stop has come in time, or another cause has ended the generation: they were failures.
void Machine::State::judge_withheld(Time now) {
    if (!running || running->withheld.empty()) return;
    running->withheld_until = kNever;
    for (auto& [outcome, at] : std::exchange(running->withheld, {}))
        take_failure(now, std::move(outcome), at);
    if (phase == Phase::running) begin_stop(now, rendezvous::kTerminate, config.grace_restart);
    if (running->exited == running->place.slots) sweep(now);
}

void Machine::State::begin_stop(Time now, int signal, Duration grace) {
    phase = Phase::stopping;
    if (!running->stopping_since) running->stopping_since = now;
    if (running->sweeping) return;
    if (running->ladder) return running->ladder->kill_at(now + grace);
    running->ladder = StopLadder(signal, now, grace);
    climb(now);
}

void Machine::State::climb(Time now) {
    if (!running || !running->ladder || running->sweeping) return;
    const std::optional<int> signal = running->ladder->step(now);
    if (signal == kKill)
        sweep(now);
    else if (signal)
        effects.push_back(SignalWorkers{*signal, running->hint});
}

void Machine::State::sweep(Time now) {
    if (running->sweeping) return;
    running->sweeping = true;
    running->sweeping_since = now;
    running->look_at = now + config.kill_patience;
    effects.push_back(Sweep{running->place.generation});
}

void Machine::State::look_for_stuck(Time now) {
    if (!running || now < running->look_at) return;
    running->look_at = kNever;
    effects.push_back(LookForStuck{running->place.generation, now - running->sweeping_since});
}

// It stays to hear how the job ends: an early exit would be a failed task to Slurm. Its vow holds
// all the same, for what is left runs no instruction any more.
void Machine::State::on_cannot_kill(Time now, const CannotKill& event) {
    if (!is_running(event.generation) || !running->sweeping || !running->stuck.empty()) return;
    running->stuck = event.sentence;
    note(Note::Level::error, "this node is unusable: " + event.sentence);
    if (ending) return leave(now, *ending);
    send(rendezvous::Unusable{event.sentence});
}

// Nothing of the generation is left here. After a success, or a planned stop, the node stays a
// member, so that its vow does not end the generation under those that still run; `over` lets it
// go.
void Machine::State::on_swept(Time now, const Swept& event) {
    if (!is_running(event.generation) || !running->stuck.empty()) return;
    running->exited = running->place.slots;
    const bool stays =
        phase == Phase::running || (running->planned_stop && phase == Phase::stopping);
    if (stays && !ending && now < deadline()) {
        phase = Phase::waiting;
        running->sweeping = false;
        running->look_at = kNever;
        running->ladder.reset();
        return beat(now);
    }
    cleared(now);
}

// The generation has ended on this node for good, its workers are gone: the vow is kept, and said,
// with a new offer, for the next generation's store has a port of its own.
void Machine::State::cleared(Time now) {
    past = {running->place.generation, running->stopping_since.value_or(now),
            std::min(running->all_ended, now), now};
    past.stopped = std::max(past.stopped, past.told);
    lease.stopped();
    running.reset();
    phase = Phase::joining;
    effects.push_back(CloseStore{});
    effects.push_back(SetDeadline{kNever});
    if (ending) return leave(now, *ending);
    rendezvous::Join join = next_join(now);
    if (welcomed) join.facts.failures.clear();  // this leader was told each at once
    send(std::move(join));
}

void Machine::State::on_keeper_died(Time now) {
    keeper_alive = false;
    note(Note::Level::error, "the keeper has died; the workers of this node are gone with it");
    if (!running) return;
    facts.interrupt(
        {config.node.name, "the keeper of node " + config.node.name + " has died", true}, now);
    cleared(now);
}

void Machine::State::on_progress(Time now, const WorkerProgress& event) {
    if (!is_running(event.generation)) return;
    running->step = std::max(running->step, event.step);
    facts.saved(event.snapshot);
    if (event.snapshot_took > Duration{}) snapshot_took = event.snapshot_took;
    std::int64_t& step = worker(event.local_rank).step;
    step = std::max(step, event.step);
    if (++running->reports == 1) running->first_report = now;
    running->reported_at = now;
    made_progress(now);
    if (config.limits.hang_timeout > Duration{}) tell_soon(now);
}

WorkerState& Machine::State::worker(int local_rank) {
    DDPRUN_CHECK(local_rank >= 0 && local_rank < running->place.slots, "no worker of this node");
    return running->workers[static_cast<std::size_t>(local_rank)];
}

// Where the regular beats tell it, they do.
void Machine::State::tell_soon(Time now) {
    if (lease.next_beat() == kNever && tell_at == kNever)
        tell_at = now + share(lease.lease(), rendezvous::LeaseMember::kBeatPeriod);
}

std::vector<rendezvous::RankStep> Machine::State::slowest() const {
    std::vector<rendezvous::RankStep> living;
    const int first = running->place.rank_offset;
    for (int i = 0; i < running->place.slots; ++i) {
        const WorkerState& worker = running->workers[static_cast<std::size_t>(i)];
        if (!worker.ended) living.push_back({first + i, worker.step});
    }
    std::sort(living.begin(), living.end(), rendezvous::slower);
    if (living.size() > rendezvous::kSlowest) living.resize(rendezvous::kSlowest);
    return living;
}

rendezvous::Marks Machine::State::marks(Time now) const {
    using enum rendezvous::RestartPhase;
    rendezvous::Marks marks{running ? running->place.generation : past.generation, {}};
    const auto add = [&](rendezvous::RestartPhase phase, Time at) {
        if (at <= now) marks.passed.push_back({phase, now - at});
    };
    if (running) {
        add(started, running->all_started);
        add(contact, running->first_contact);
        add(progress, running->first_report);
    } else if (past.generation != kNoGeneration) {
        add(told, past.told);
        add(stopped, past.stopped);
        add(gone, past.gone);
    }
    return marks;
}

void Machine::State::on_examine(const rendezvous::Examine& examine) {
    if (!is_running(examine.generation) || phase != Phase::running) return;
    ExamineWorkers effect{examine.generation, {}};
    const int first = running->place.rank_offset;
    for (const int rank : examine.ranks)
        if (rank >= first && rank < first + running->place.slots)
            effect.local_ranks.push_back(rank - first);
    effects.push_back(std::move(effect));
}

void Machine::State::on_examined(const WorkersExamined& event) {
    if (!is_running(event.generation)) return;
    rendezvous::Report report{.generation = event.generation, .outcomes = event.outcomes};
    for (rendezvous::WorkerOutcome& outcome : report.outcomes) {
        outcome.rank = running->place.rank_offset + outcome.local_rank;
        outcome.local_rank += running->place.host().first_local_rank;
        outcome.hung = true;
    }
    send(std::move(report));
}

void Machine::State::on_contact(Time now, const StoreContact& event) {
    if (!is_running(event.generation)) return;
    if (running->contacts == 0) {
        running->first_contact = now;
        tell_soon(now);
    }
    if (++running->contacts >= running->place.world_size && running->all_in_contact == kNever &&
        !facts.progressed())
        running->all_in_contact = now + kLifeAfterContact;
}

// Said at once the first time, for a failure may follow on its heels and the budget depends on it.
void Machine::State::made_progress(Time now) {
    running->all_in_contact = kNever;
    if (facts.made_progress()) beat(now);
}

}  // namespace ddprun::agent
