// Workers and what becomes of them, faults, and the world's record of violations and its trace.
#include <algorithm>
#include <csignal>

#include "tests/sim/world.h"

namespace ddprun::sim {

// run() stops after the step that has recorded a violation.
void World::violation(const std::string& sentence) {
    violations_.push_back("at " + ddprun::to_text(now() - Time{}) + ": " + sentence);
    trace(hosts_.front(), "VIOLATION " + sentence);
}

void World::trace(const Host& host, const std::string& line) {
    std::string whole = std::to_string(now().time_since_epoch().count() / 1000) + " " + host.name +
                        " " + line + "\n";
    for (const char byte : whole)
        // FNV-1a. The hash of a long job tells whether two runs were the same, without their
        // traces.
        trace_hash_ = (trace_hash_ ^ static_cast<unsigned char>(byte)) * 1099511628211ULL;
    trace_ += whole;
    // A failing test prints the end of the trace. The rest would take gigabytes over thousands of
    // jobs.
    if (!config_.keep_trace && trace_.size() > 200'000) trace_.erase(0, 100'000);
}

std::string World::tail(std::size_t lines) const {
    std::size_t from = trace_.size();
    for (; from > 0 && lines > 0; --from)
        if (from < trace_.size() && trace_[from - 1] == '\n' && --lines == 0) break;
    return trace_.substr(from);
}

Behaviour World::behaviour(Generation generation, int host, int rank) {
    if (config_.script) return config_.script(generation, host, rank);
    return {config_.work + random_.span({}, lease(0.05)), 0, false};
}

// A generation with a worker that is gone is never complete.
bool World::complete(Generation generation) const {
    const auto found = started_.find(generation);
    const rendezvous::LedgerEntry* entry = ledger_.find(generation);
    return entry && found != started_.end() && !broken_.contains(generation) &&
           static_cast<int>(found->second.size()) == entry->assignment.world_size;
}

Time World::started(Generation generation) const {
    const auto found = all_started_.find(generation);
    return found == all_started_.end() ? kNever : found->second;
}

void World::worker_started(Host& host, const Worker& worker) {
    started_[worker.generation].insert(worker.rank);
    // The node with the store sees each worker connect.
    if (complete(worker.generation)) all_started_.emplace(worker.generation, now());
    for (const auto& process : processes_)
        if (process->alive && process->store == worker.generation)
            clock_.after(lease(0.002), [this, &process = *process, generation = worker.generation] {
                const int met = static_cast<int>(started_[generation].size());
                post_agent(process, agent::StoreContact{generation, met});
            });
    if (config_.progress && (config_.only_rank_0_reports ? worker.rank : worker.local_rank) == 0)
        clock_.after(lease(0.4), [this, &host, generation = worker.generation, pid = worker.pid] {
            progress(host, generation, pid, 1);
        });
    // A peer is gone already. So this worker waits for it in a collective, and never ends by
    // itself.
    if (broken_.contains(worker.generation))
        for (Worker& each : host.workers)
            if (each.pid == worker.pid) each.behaviour.life = Duration::max();
}

// A worker reports a step each 0.4 of a lease, until it or a peer is gone. A paused host, or a
// generation that has not fully started, makes no step.
void World::progress(Host& host, Generation generation, std::int64_t pid, std::int64_t step) {
    const auto worker = std::find_if(host.workers.begin(), host.workers.end(),
                                     [pid](const Worker& each) { return each.pid == pid; });
    if (worker == host.workers.end() || !host.up || broken_.contains(generation) ||
        stuck_.contains(generation))
        return;
    if (complete(generation) && !paused(host)) {
        post_agent(*host.process,
                   agent::WorkerProgress{generation, step, step - 1, worker->local_rank});
        if (step == worker->behaviour.stands_at) return stand_still(generation);
    }
    clock_.after(lease(0.4), [=, this, &host] { progress(host, generation, pid, step + 1); });
}

// All its workers write a snapshot within a tenth of a lease, and one of them reports it. Where
// workers report progress, each report names a newer snapshot anyway.
void World::ask_snapshot(Process& process, const agent::SnapshotHint& hint) {
    invariants_.asked_for_snapshot(process, hint);
    if (config_.progress) return;
    clock_.after(lease(0.1), [this, &process, generation = hint.generation] {
        if (!process.alive || !complete(generation) || broken_.contains(generation)) return;
        const auto step = std::chrono::duration_cast<std::chrono::milliseconds>(now() - Time{});
        post_agent(process, agent::WorkerProgress{generation, step.count(), step.count()});
    });
}

void World::worker_ended(Host& host, const Worker& worker, const rendezvous::WorkerOutcome& outcome,
                         bool natural) {
    trace(host, outcome.sentence + " code " + std::to_string(outcome.exit_code) + " signal " +
                    std::to_string(outcome.signal));
    invariants_.worker_ended(worker, outcome, natural);
    if (!natural || outcome.failed()) break_collectives(worker.generation);
}

// One rank stands, and the others wait for it in a collective. No process ends by itself any more.
void World::stand_still(Generation generation) {
    stuck_.insert(generation);
    invariants_.stood_still(generation);
    for (Host& host : hosts_)
        for (Worker& worker : host.workers)
            if (worker.generation == generation && !worker.dying)
                worker.behaviour.life = Duration::max();
}

// The look at workers takes up to 0.3 of a lease, and one in twenty never comes. So the leader must
// not wait for it forever.
void World::examine(Process& process, const agent::ExamineWorkers& asked) {
    agent::WorkersExamined seen{asked.generation, {}};
    for (const Worker& worker : host_of(process).workers)
        if (worker.owner == process.id.incarnation && worker.generation == asked.generation &&
            std::count(asked.local_ranks.begin(), asked.local_ranks.end(), worker.local_rank) > 0) {
            seen.outcomes.emplace_back().local_rank = worker.local_rank;
            seen.outcomes.back().pid = worker.pid;
            seen.outcomes.back().stack = {"stands"};
        }
    if (random_.chance(0.05)) return;
    clock_.after(random_.span({}, lease(0.3)),
                 [this, &process, seen] { post_agent(process, seen); });
}

// A worker that is gone before its time leaves the others in a collective. Some fail soon, as with
// Gloo. The others hang, as with NCCL. Failures come up to 0.3 of a lease later, from all hosts, so
// a leader hears them in any order.
void World::break_collectives(Generation generation) {
    if (!broken_.insert(generation).second) return;
    invariants_.stood_still(generation);  // nobody makes progress from now on
    invariants_.broke(generation);
    for (Host& host : hosts_)
        for (Worker& worker : host.workers) {
            if (worker.generation != generation || worker.dying) continue;
            worker.behaviour.life = Duration::max();
            if (!random_.chance(config_.consequences)) continue;
            clock_.after(random_.span({}, lease(0.3)), [this, &host, pid = worker.pid] {
                for (const Worker& each : host.workers)
                    if (each.pid == pid && each.alive && !each.dying && host.up && !paused(host)) {
                        const Incarnation owner = each.owner;
                        for (const auto& process : processes_)
                            if (process->id.incarnation == owner)
                                process->keeper->ends(pid, 1, 0, true);
                        return;
                    }
            });
        }
}

// Makes a fault happen now. Most faults do nothing to a process that has ended or a host that is
// paused.
void World::apply(const Fault& fault) {
    Host& host = hosts_[fault.host];
    Process* process = host.process;
    // A lost host stays lost.
    if (!host.up) return;
    trace(host, "FAULT " + to_text(fault));
    const Time until = now() + fault.lasts;
    switch (fault.kind) {
        case Fault::Kind::worker_fails:
            for (Worker& worker : host.workers)
                if (worker.alive && !worker.dying && !paused(host) && process->alive &&
                    worker.owner == process->id.incarnation) {
                    // Slurm signals the tasks of a step directly, before any ddprun knows of the
                    // stop.
                    if (config_.in_slurm)
                        process->keeper->ends(worker.pid, 0, 15, true);
                    else
                        process->keeper->ends(worker.pid, random_.between(1, 9), 0, true);
                    break;
                }
            break;
        case Fault::Kind::warm_start_differs:
            for (Worker& worker : host.workers)
                if (worker.alive && !worker.dying && !paused(host) && process && process->alive &&
                    worker.owner == process->id.incarnation) {
                    worker.differs = true;
                    process->keeper->ends(worker.pid, 1, 0, false);
                    break;
                }
            break;
        case Fault::Kind::workers_stubborn:
            for (Worker& worker : host.workers) worker.behaviour.stubborn = true;
            break;
        case Fault::Kind::keeper_dies:
            if (process && process->alive && !process->exit && !paused(host) && !frozen(*process))
                process->keeper->dies();
            break;
        case Fault::Kind::keeper_freezes:
            if (process && process->alive && !process->exit && !paused(host) && !frozen(*process))
                process->keeper->freezes();
            break;
        case Fault::Kind::stop_asked:
            if (!process || !process->alive) break;
            process->signalled = true;
            // SIGUSR1 asks for a requeue; see requeue_signals in world.cc.
            post_agent(*process, agent::SignalCame{fault.lasts > Duration{} ? 10 : 15});
            break;
        case Fault::Kind::process_killed:
            kill_process(host);
            break;
        case Fault::Kind::process_replaced:
            kill_process(host);
            ++pending_;
            clock_.after(fault.lasts, [this, &host] { replace_process(host); });
            break;
        case Fault::Kind::step_killed:
            if (!process || !process->alive || paused(host)) break;
            // The host lives on, so its kernel closes the connections. That says nothing about the
            // workers.
            process->keeper->dies_with_all();
            kill_process(host);
            for (const int connection : {process->connection, process->standby})
                if (connection >= 0) network_.close(connection, kNode);
            break;
        case Fault::Kind::host_lost:
            lose_host(host);
            break;
        case Fault::Kind::host_paused:
            stall(host, host.paused_until, fault.lasts);
            break;
        case Fault::Kind::job_suspended:
            for (Host& each : hosts_)
                if (each.up && !each.outside)
                    stall(each, each.paused_until, fault.lasts + lease(random_.real(0, 0.1)));
            break;
        case Fault::Kind::host_suspended:
            suspend(host, fault.lasts);
            break;
        case Fault::Kind::process_frozen:
            if (!process || !process->alive) break;
            process->keeper->thaws();
            stall(host, process->frozen_until, fault.lasts);
            break;
        case Fault::Kind::connection_dropped:
        case Fault::Kind::connection_reset:
            // One end may learn of it up to three leases later.
            host.disturbed_until = std::max(host.disturbed_until, now() + lease(4));
            if (!process || process->connection < 0 || ends_[process->connection].second == process)
                break;
            if (fault.kind == Fault::Kind::connection_dropped)
                network_.drop(process->connection);
            else
                network_.reset(process->connection, kNode);
            break;
        case Fault::Kind::cut_off:
        case Fault::Kind::cut_from_others:
        case Fault::Kind::cut_to_others:
            for (int other = 0; other < host_count(); ++other) {
                if (other == host.index) continue;
                if (fault.kind != Fault::Kind::cut_from_others)
                    network_.cut(host.index, other, now(), until);
                if (fault.kind != Fault::Kind::cut_to_others)
                    network_.cut(other, host.index, now(), until);
            }
            break;
        case Fault::Kind::split:
        case Fault::Kind::split_one_way:
            for (int one = 0; one <= host.index; ++one)
                for (int other = host.index + 1; other < host_count(); ++other) {
                    network_.cut(one, other, now(), until);
                    if (fault.kind == Fault::Kind::split) network_.cut(other, one, now(), until);
                }
            break;
        case Fault::Kind::host_refuses:
            network_.refuse(host.index, host_count(), now(), until);
            break;
        case Fault::Kind::ledger_stalls:
            ledger_.stall(-1, now(), until);
            break;
        case Fault::Kind::ledger_stalls_here:
            ledger_.stall(host.index, now(), until);
            break;
        case Fault::Kind::entry_vanishes:
            ledger_.vanish(host.index);
            break;
        case Fault::Kind::operator_stops:
            operate(rendezvous::StopJob{}, fault.lasts);
            break;
        case Fault::Kind::operator_restarts:
            operate(rendezvous::RestartGeneration{}, fault.lasts);
            break;
        case Fault::Kind::operator_drains:
            operate(rendezvous::DrainNode{host.name}, fault.lasts);
            break;
        case Fault::Kind::operator_sets_limits:
            operate(rendezvous::SetLimits{limits_of(fault.host)}, fault.lasts);
            break;
        case Fault::Kind::operator_asks_snapshot:
            operate(rendezvous::AskSnapshot{}, fault.lasts);
            break;
        case Fault::Kind::operator_stops_later:
            operate(rendezvous::StopJob{.after_snapshot = true}, fault.lasts);
            break;
    }
}

// An operator finds whoever leads. A generation that he names is that of the first leader's status,
// also if he asks again.
void World::operate(rendezvous::OperatorAction action, Duration again_after) {
    for (const auto& process : processes_) {
        if (!process->alive || !process->leads()) continue;
        if (auto* restart = std::get_if<rendezvous::RestartGeneration>(&action);
            restart && restart->generation == kNoGeneration)
            restart->generation = process->service->snapshot().newest;
        post_service(*process, rendezvous::Operated{"operator", action});
    }
    if (again_after > Duration{})
        clock_.after(again_after, [this, action] { operate(action, Duration{}); });
}

// Pauses a host or freezes its ddprun. Which one follows from the field that is changed.
void World::stall(Host& host, Time& until, Duration lasts) {
    const bool pauses = &until == &host.paused_until;
    until = std::max(until, now() + lasts);
    host.stood_until = std::max(host.stood_until, until);
    host.disturbed_until = std::max(host.disturbed_until, until);
    // A worker on this host may make no progress for so long, and that may look like a hang.
    for (const Worker& worker : host.workers) invariants_.stood_still(worker.generation);
    clock_.at(until, [this, &host, pauses] {
        if (!host.up || paused(host)) return;
        if (pauses) {
            host.resumed_at = now();
            // The invariants allow such a host the length of one kill.
            host.resumed_stale = !host.process || !host.process->alive ||
                                 host.clock.local(now()) > host.process->keeper->deadline();
        }
        if (host.process) drain(*host.process);
    });
}

// A pause in which the clock stands still. What runs there does not notice it.
void World::suspend(Host& host, Duration lasts) {
    if (paused(host)) return;
    // While the host still stands: when it goes on, all of it must see the same time.
    clock_.after(lasts - Duration{1}, [this, &host, lasts] {
        host.clock.stood_still(lasts);
        invariants_.clock_goes_on();
    });
    stall(host, host.paused_until, lasts);
}

// The death of a ddprun. Its sockets close, its keeper lives on and does the rest.
void World::kill_process(Host& host) {
    Process* process = host.process;
    if (!process || !process->alive || !host.up || paused(host)) return;
    trace(host, "ddprun is killed");
    process->keeper->thaws();
    process->alive = false;
    process->inbox.clear();
    close_leader_side(*process);
    process->keeper->process_died();
}

// Power off: no connection is closed and no message is sent. The peers of its workers fail or hang,
// and the others notice nothing else.
void World::lose_host(Host& host) {
    host.up = false;
    if (host.process) host.process->alive = false;
    std::vector<Worker> lost;
    lost.swap(host.workers);
    for (const Worker& worker : lost) break_collectives(worker.generation);
}

// A new ddprun comes on a host whose old one was killed, as Slurm or a user would start it.
void World::replace_process(Host& host) {
    // The old keeper has the port until its workers are dead.
    if (host.up && (paused(host) || !host.workers.empty())) {
        clock_.after(lease(0.1), [this, &host] { replace_process(host); });
        return;
    }
    --pending_;
    if (host.up && host.process && !host.process->alive && !host.process->exit) start_process(host);
}

}  // namespace ddprun::sim
