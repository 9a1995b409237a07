// The model of a keeper: starts, kills and ends of workers with random delays. A paused host is
// asked again when it resumes: nothing on it moves, while the events of the simulator go on.
#include "tests/sim/keeper.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "keeper/process/keeper_deadline.h"
#include "rendezvous/model/durations.h"
#include "tests/sim/world.h"

namespace ddprun::sim {

void Keeper::set_deadline(Time local) {
    deadline_ = local;
    guarded_ = true;
    // The timer of an older deadline cannot be removed from the clock. It finds another number and
    // does nothing.
    const int number = ++deadline_number_;
    if (local == kNever) return;
    world_.clock().at(host_.clock.truth(local), [this, number] { check_deadline(number); });
}

void Keeper::check_deadline(int number) {
    if (number != deadline_number_ || !host_.up) return;
    if (world_.config().mutation == Mutation::keeper_ignores_deadlines) return;
    if (world_.paused(host_)) {
        world_.clock().at(host_.paused_until + world_.random().span({}, world_.lease(0.001)),
                          [this, number] { check_deadline(number); });
        return;
    }
    if (living() == 0 || frozen_) return;
    // The clock has stood still meanwhile.
    if (host_.clock.local(world_.now()) < deadline_) return set_deadline(deadline_);
    world_.trace(host_, "keeper: the deadline has passed");
    kill_all();
    world_.clock().after(
        // A ddprun that runs notices the deadline, too. One that stands still is killed; one that
        // only gets no processor is not, and may act on old messages when it goes on.
        world_.lease(agent::keeper::kFrozen), [this] {
            if (process_.alive && host_.up && !world_.paused(host_) && world_.frozen(process_) &&
                world_.random().chance(0.5))
                world_.kill_process(host_);
        });
}

// One worker for each slot. Fork and exec take up to 0.02 of a lease: in this time a kill or a
// deadline may come.
void Keeper::spawn(const rendezvous::NodePlace& place) {
    if (frozen_) return;
    if (!replaced_) world_.violation(host_.name + " starts workers without a keeper");
    world_.invariants().spawned(host_, process_, place, guarded_, deadline_);
    for (int local_rank = 0; local_rank < place.slots; ++local_rank) {
        Worker worker;
        worker.pid = world_.next_pid();
        worker.owner = process_.id.incarnation;
        worker.generation = place.generation;
        worker.rank = place.rank_offset + local_rank;
        worker.local_rank = local_rank;
        worker.behaviour = world_.behaviour(place.generation, host_.index, worker.rank);
        host_.workers.push_back(worker);
        world_.clock().after(
            world_.random().span({}, world_.lease(0.02)),
            [this, generation = worker.generation, pid = worker.pid] { start(generation, pid); });
    }
}

void Keeper::start(Generation generation, std::int64_t pid) {
    Worker* worker = find(pid);
    if (!worker || !host_.up || worker->dying) return;
    if (world_.paused(host_)) {
        world_.clock().at(host_.paused_until + world_.random().span({}, world_.lease(0.001)),
                          [this, generation, pid] { start(generation, pid); });
        return;
    }
    // Rule 4: a worker reads the clock once more just before exec. Without this it would run for
    // the length of a kill.
    const bool late = host_.clock.local(world_.now()) >= deadline_ &&
                      world_.config().mutation != Mutation::keeper_ignores_deadlines;
    if (late || orphaned_) {
        world_.post_agent(process_,
                          agent::WorkerNotStarted{generation, worker->local_rank,
                                                  "the deadline has passed before exec", 126});
        std::erase_if(host_.workers, [pid](const Worker& each) { return each.pid == pid; });
        check_swept();
        return;
    }
    worker->alive = true;
    if (!frozen_)
        world_.post_agent(process_, agent::WorkerStarted{generation, worker->local_rank, pid});
    world_.worker_started(host_, *worker);
    live(pid);
}

// Plans the natural end of a worker.
void Keeper::live(std::int64_t pid) {
    const Worker* worker = find(pid);
    const Behaviour behaviour = worker->behaviour;
    if (behaviour.life == Duration::max()) return;
    world_.clock().after(behaviour.life, [this, pid] {
        Worker* worker = find(pid);
        if (!worker || worker->dying || !host_.up || worker->behaviour.life == Duration::max())
            return;
        // A worker that succeeds waits for its peers: nobody finishes before all have begun. A
        // failure does not wait.
        const bool waits = worker->behaviour.exit_code == 0 && !world_.complete(worker->generation);
        if (world_.paused(host_) || waits) {
            worker->behaviour.life =
                world_.lease(0.05) + std::max(Duration{}, host_.paused_until - world_.now());
            live(pid);
            return;
        }
        ends(pid, worker->behaviour.exit_code, 0, true);
    });
}

void Keeper::signal(int number) {
    for (Worker& worker : host_.workers) {
        if (worker.owner != process_.id.incarnation) continue;
        if (number == SIGKILL) {
            kill(worker);
        } else if (number != 0 && worker.alive && !worker.behaviour.stubborn && !worker.told_stop) {
            // A worker may need time for a last snapshot: up to 0.2 of a lease. A stubborn one does
            // not end, and the agent sends SIGKILL after its grace.
            worker.told_stop = true;
            world_.clock().after(
                world_.random().span({}, world_.lease(0.2)), [this, pid = worker.pid, number] {
                    const Worker* worker = find(pid);
                    if (worker && !worker->dying && host_.up && !world_.paused(host_))
                        ends(pid, 0, number, false);
                });
        }
    }
}

void Keeper::sweep(Generation generation) {
    if (world_.config().mutation == Mutation::swept_too_early) {
        world_.post_agent(process_, agent::Swept{generation});
        return;
    }
    // ddprun kills, too, so a frozen keeper protects nobody.
    if (!frozen_ || world_.config().mutation != Mutation::frozen_keeper_protects)
        for (Worker& worker : host_.workers)
            if (worker.owner == process_.id.incarnation && worker.generation == generation)
                kill(worker);
    // Also with nothing left to kill: Swept comes as an event of its own, never from within the
    // request.
    sweeping_.push_back(generation);
    world_.clock().after(world_.random().span({}, world_.lease(0.001)), [this] { check_swept(); });
}

void Keeper::freezes() {
    if (std::exchange(frozen_, true)) return;
    world_.clock().after(world_.random().span(world_.lease(0.5), world_.lease(1.0)),
                         [this] { check_frozen(); });
}

void Keeper::check_frozen() {
    if (!frozen_ || !process_.alive || process_.exit || !host_.up) return;
    if (world_.paused(host_)) {
        world_.clock().at(host_.paused_until + world_.lease(0.5), [this] { check_frozen(); });
        return;
    }
    frozen_ = false;
    sweeping_.clear();  // KeeperDied is the answer
    world_.post_agent(process_, agent::KeeperFrozen{});
    dies({"did not answer and was killed"});
}

void Keeper::thaws() {
    if (!std::exchange(frozen_, false)) return;
    if (deadline_ != kNever) set_deadline(deadline_);
    check_swept();
}

void Keeper::dies(agent::KeeperDied how) {
    frozen_ = false;
    // The workers go with their keeper at once. Their ends are not reported: nobody is left to reap
    // them.
    std::vector<Worker> lost;
    std::erase_if(host_.workers, [&](const Worker& worker) {
        if (worker.owner != process_.id.incarnation) return false;
        lost.push_back(worker);
        return true;
    });
    for (const Worker& worker : lost) world_.break_collectives(worker.generation);
    check_swept();
    set_deadline(kNever);
    // The new keeper knows no deadline. An agent that starts workers without setting one anew
    // breaks an invariant.
    guarded_ = replaced_ = false;
    world_.post_agent(process_, how);
    world_.clock().after(world_.lease(0.1), [this] {
        replaced_ = true;
        world_.post_agent(process_, agent::KeeperBack{});
    });
}

void Keeper::dies_with_all() {
    alive_ = false;
    set_deadline(kNever);
    kill_all();
}

void Keeper::process_died() {
    // After dies_with_all() there is no keeper that could say anything.
    if (!alive_) return;
    orphaned_ = true;
    gone_on_ = process_.connection;
    if (world_.config().mutation == Mutation::gone_too_early)
        world_.keeper_says_gone(process_, gone_on_);
    world_.clock().after(world_.random().span({}, world_.lease(0.002)), [this] {
        kill_all();
        check_swept();
    });
}

void Keeper::kill(Worker& worker) {
    if (worker.dying) return;
    worker.dying = true;
    // 0.04 of a lease is what the margin allows for. The mutation takes far more than the margin.
    const Share longest =
        world_.config().mutation == Mutation::kills_are_slow ? Share{3000} : rendezvous::kKill;
    const Duration takes = world_.random().span({}, world_.lease(longest));
    world_.clock().after(takes, [this, pid = worker.pid] { ends(pid, 0, SIGKILL, false); });
}

void Keeper::kill_all() {
    for (Worker& worker : host_.workers)
        if (worker.owner == process_.id.incarnation) kill(worker);
}

void Keeper::ends(std::int64_t pid, int exit_code, int signal, bool natural) {
    Worker* worker = find(pid);
    if (!worker || !host_.up) return;
    if (world_.paused(host_)) {
        const Time when = host_.paused_until + world_.random().span({}, world_.lease(0.02));
        world_.clock().at(when, [=, this] { ends(pid, exit_code, signal, natural); });
        return;
    }
    const Worker ended = *worker;
    std::erase_if(host_.workers, [pid](const Worker& each) { return each.pid == pid; });
    if (ended.alive) {
        rendezvous::WorkerOutcome outcome;
        outcome.rank = ended.rank;
        outcome.local_rank = ended.local_rank;
        outcome.pid = pid;
        outcome.exit_code = exit_code;
        outcome.signal = signal;
        outcome.sentence = "rank " + std::to_string(ended.rank) + " (local " +
                           std::to_string(ended.local_rank) + " on " + host_.name + ") ended";
        world_.worker_ended(host_, ended, outcome, natural);
        if (frozen_) return;  // nobody reaps it, so nobody tells
        const Time at = host_.clock.local(world_.now());
        if (outcome.failed())
            world_.post_agent(process_, agent::WorkerLost{ended.generation, ended.local_rank,
                                                          exit_code, signal, at});
        if (ended.differs)
            world_.post_agent(process_, agent::WarmStartDiffers{ended.generation, ended.local_rank,
                                                                "it differs", at});
        else
            world_.post_agent(process_, agent::WorkerExited{ended.generation, outcome, at});
    } else if (!frozen_) {
        // The kill came between fork and exec, so no program has run.
        world_.post_agent(process_, agent::WorkerNotStarted{ended.generation, ended.local_rank,
                                                            "killed before exec", 126});
    }
    check_swept();
}

void Keeper::check_swept() {
    if (!host_.up || frozen_) return;
    if (world_.paused(host_)) {
        world_.clock().at(host_.paused_until, [this] { check_swept(); });
        return;
    }
    std::erase_if(sweeping_, [this](Generation generation) {
        for (const Worker& worker : host_.workers)
            if (worker.owner == process_.id.incarnation && worker.generation == generation)
                return false;
        world_.post_agent(process_, agent::Swept{generation});
        return true;
    });
    // Gone is a proof: it must come after the last worker is reaped.
    if (orphaned_ && living() == 0) {
        orphaned_ = false;
        world_.keeper_says_gone(process_, gone_on_);
    }
}

int Keeper::living() const {
    return static_cast<int>(std::count_if(
        host_.workers.begin(), host_.workers.end(),
        [this](const Worker& worker) { return worker.owner == process_.id.incarnation; }));
}

Worker* Keeper::find(std::int64_t pid) {
    for (Worker& worker : host_.workers)
        if (worker.pid == pid) return &worker;
    return nullptr;
}

}  // namespace ddprun::sim
