// The world's clockwork: starts of processes, events to the machines, effects of the machines.
// world_links.cc has connections and calls, world_ledger.cc the ledger, world_faults.cc workers and
// faults, mutation.cc the broken rules.
#include "tests/sim/world.h"

#include <algorithm>

#include "rendezvous/model/durations.h"
#include "tests/sim/describe.h"

namespace ddprun::sim {

using std::chrono::microseconds;

World::World(WorldConfig config)
    : config_(std::move(config)),
      random_(config_.seed),
      network_(
          clock_, random_, config_.limits.times.lease, config_.packet_loss,
          config_.slow_connections, [this](int host) { return hosts_[host].up; },
          [this](int connection, Side side) { connection_ended(connection, side); }),
      ledger_(
          clock_, random_, config_.limits.times.lease,
          [this](const std::string& sentence) { violation(sentence); },
          [this](const rendezvous::LedgerEntry& entry) { appended(entry); }),
      invariants_(*this) {
    ledger_.lose_answers(config_.lost_answers);
    ledger_.stale(config_.stale_look_ups);
    if (config_.mutation == Mutation::create_overwrites) ledger_.overwrite();
    ledger_.old_looks(config_.mutation == Mutation::looks_are_old);
    const int allocations = config_.requeued_at > Duration{} ? 2 : 1;
    for (int i = 0; i < allocations * config_.hosts; ++i) {
        const int place = i % config_.hosts;
        // By default not all at the same moment: the seed decides which node comes first.
        const bool given = place < static_cast<int>(config_.starts.size());
        const Duration start = given ? config_.starts[place] : random_.span({}, lease(0.1));
        if (i < config_.hosts)
            add_host("n" + std::to_string(place), 0, place, start);
        else
            add_host("m" + std::to_string(place), 1, place, config_.requeued_at + start);
    }
    if (config_.again_on >= 0)
        add_host(hosts_[config_.again_on].name, 0, config_.again_on, config_.again_after);
    for (int i = 0; i < config_.outside; ++i) {
        add_host("r" + std::to_string(i), 0, config_.hosts + i, i * config_.outside_apart);
        hosts_.back().outside = true;
    }
    for (const int host : config_.blind) ledger_.hide_from(host);
    for (const Fault& fault : config_.faults) {
        in_order(fault.at, [this, fault] { apply(fault); });
        bound_ = std::max(bound_, fault.at + fault.lasts);
    }
    // Generous: ten generations, each with its work, a stop and a gathering, and the waits for
    // nodes. A job that is still there then will never end.
    bound_ += 10 * (config_.work + lease(6)) + 4 * config_.limits.times.join_timeout +
              config_.limits.times.last_call;
}

World::~World() = default;

// Counts the starts and faults that are still to come: as long as there are some, a host without a
// process may get one.
void World::in_order(Time when, std::function<void()> action) {
    ++pending_;
    clock_.at(when, [this, action = std::move(action)] {
        --pending_;
        action();
    });
}

void World::add_host(const std::string& name, int allocation, int place, Duration start) {
    Host host;
    host.index = host_count();
    host.name = name;
    host.allocation = allocation;
    host.place = place;
    // Clocks are up to 100 hours apart, so a comparison between hosts is wrong at once. They drift
    // by as much as the margin of the lease allows for.
    host.clock = NodeClock(random_.span(std::chrono::seconds{1}, std::chrono::hours{100}),
                           random_.real(-rendezvous::kDriftPpm, rendezvous::kDriftPpm) / 1e6);
    in_order(Time{start}, [this, i = host.index] {
        if (hosts_[i].up && !hosts_[i].process) start_process(hosts_[i]);
    });
    bound_ = std::max(bound_, Time{start});
    hosts_.push_back(std::move(host));
}

bool World::is_blind(int host) const {
    return std::ranges::find(config_.blind, host) != config_.blind.end();
}

void World::run() {
    while (!clock_.empty() && violations_.empty() && clock_.now() < bound_ && !over()) {
        clock_.step();
        invariants_.after_step();
        // Many events and no progress in time: a machine that asks for the same Tick again and
        // again.
        if (++steps_ > 3'000'000) violation("the world spins");
    }
    if (violations_.empty()) invariants_.at_end();
}

// All processes have ended, and either each host has had one or no start is left.
bool World::over() const {
    if (pending_ > 0 && processes_.empty()) return false;
    for (const auto& process : processes_)
        if (process->alive && process->agent) return false;
    return processes_.size() >= hosts_.size() || pending_ == 0;
}

// Starts a ddprun on a host, with the configuration that its command line would give it.
void World::start_process(Host& host) {
    auto process = std::make_unique<Process>();
    process->host = host.index;
    // A new number for each process, never the same again.
    process->id = {host.name, Incarnation{++incarnations_ * 7919}};
    const Time now = host.clock.local(clock_.now());
    const rendezvous::Times& times = config_.limits.times;
    agent::MachineConfig config;
    config.run_id = "sim";
    config.node = process->id;
    const int place = host.place, restart = host.allocation;
    config.offer.slots = place < static_cast<int>(config_.slots.size()) ? config_.slots[place] : 1;
    if (config_.offer_node_ranks) config.offer.node_rank = place;
    config.offer.address =
        config_.each_leads ? kOfEachHost : "10.0.0." + std::to_string(host.index + 1);
    config.offer.addresses = {config.offer.address};
    config.offer.service_port = 29400;
    config.offer.store_port = 29500;
    config.version = "0.1.0";
    config.requeue = restart;
    config.limits = config_.limits;
    if (restart > 0)
        for (std::string& name : config.limits.order) name.front() = 'm';
    config.join_timeout = times.join_timeout;
    // Shorter than the product's 30 s and 5 s, which would be many leases of 1 s.
    config.grace.final_stop = lease(1);
    config.grace.restart = lease(0.3);
    config.stop.in_slurm = config_.in_slurm;
    config.stop.requeue = agent::RequeueMode::automatic;
    // SIGUSR1, as with --requeue-signal=USR1.
    config.stop.requeue_signals = {10};
    config.stop.leaves = config_.leaves;
    // As with --node-rank: host 0 has the endpoint.
    config.leads = (place == 0 || config_.each_leads) && config_.outside == 0;
    config.may_lead = config_.outside == 0;
    if (!host.outside) process->agent.emplace(config, now);
    process->keeper = std::make_unique<Keeper>(*this, host, *process);
    Process& here = *process;
    host.process = &here;
    processes_.push_back(std::move(process));
    trace(host, "ddprun starts");
    start_service(here, host, config);
    if (host.outside) {
        if (config_.forgets) ledger_.forget();
        return post_service(here, leads_from({here.id, config.offer.address, 29400}));
    }
    // A leader that joins 0.7 of a lease later finds its place taken: it leads as a spare.
    if (place != 0 || !config_.leader_joins_late) return post_agent(here, agent::Started{});
    post_service(here, leads_from({here.id, config.offer.address, 29400}));
    clock_.after(lease(0.7), [this, &here] { post_agent(here, agent::Started{}); });
}

void World::start_service(Process& process, const Host& host, const agent::MachineConfig& config) {
    rendezvous::MachineConfig service;
    service.run_id = config.run_id;
    service.self = process.id;
    service.command_digest = "digest";
    service.version = config.version;
    service.requeue = config.requeue;
    service.limits = config.limits;
    service.seed = random_.bits();
    service.succession = config_.succession && config_.outside == 0;
    for (const Host& other : hosts_)
        if (config_.each_leads && other.name != host.name)
            service.rivals.push_back(
                {{other.name, {}}, "10.0.0." + std::to_string(other.index + 1), 29400});
    service.in_slurm = config_.in_slurm || config_.requeued_at > Duration{};
    service.outside = host.outside;
    // All hosts have the same time of day when a process starts there, as with NTP.
    const Time local = host.clock.local(clock_.now());
    service.to_day = kDay + (clock_.now() - local);
    // What the product's launcher says of a folder in which no end is (launcher/job/job_ledger.h).
    service.earlier_unrecorded = config_.folder_opens && host.allocation > 0;
    process.service.emplace(service, local);
    if (config_.folder_opens && host.allocation == 0) write_behind(process);
}

// All hosts share the one ledger.
rendezvous::Lead World::leads_from(const rendezvous::Peer& self) const {
    const bool lasts = config_.succession && !config_.forgets;
    return {.self = self, .ledger = "ledger", .ledger_mark = lasts ? kMark : 0};
}

// Never from within the caller: like a real loop, an event comes after the current one.
void World::post_agent(Process& process, agent::Event event) {
    clock_.after({}, [this, &process, event = std::move(event)] {
        deliver(process, false, [this, &process, event] { step_agent(process, event); });
    });
}

// Runs it now, or when the process can run again. A full inbox also means waiting: nothing may
// overtake.
void World::deliver(Process& process, bool tick, std::function<void()> run) {
    if (!process.alive || !hosts_[process.host].up) return;
    if (paused(hosts_[process.host]) || frozen(process) || !process.inbox.empty())
        process.inbox.push_back({tick, std::move(run)});
    else
        run();
}

void World::drain(Process& process) {
    if (paused(host_of(process)) || frozen(process)) return;  // another drain will come
    // After a pause, a real loop may look at its timers first, or at its sockets. Both orders must
    // be safe.
    const bool ticks_first = random_.chance(0.5);
    std::stable_partition(process.inbox.begin(), process.inbox.end(),
                          [=](const Pending& pending) { return pending.tick == ticks_first; });
    auto inbox = std::move(process.inbox);
    process.inbox.clear();
    for (Pending& pending : inbox)
        if (process.alive) pending.run();
}

void World::step_agent(Process& process, const agent::Event& event) {
    if (!process.alive || process.exit || !process.agent) return;
    trace(host_of(process), "agent < " + describe(event));
    perform(process, process.agent->step(host_of(process).clock.local(now()), event));
    plan_tick(process, false);
}

void World::step_service(Process& process, const rendezvous::Event& event) {
    if (!process.alive || process.closed) return;
    trace(host_of(process), "service < " + describe(event));
    const rendezvous::Effects effects =
        process.service->step(host_of(process).clock.local(now()), event);
    invariants_.stepped(process, event, effects);
    perform(process, effects);
    plan_tick(process, true);
}

// A machine says when it wants its next Tick. A later wish replaces an earlier one; the event of
// the earlier one then finds another time and does nothing.
void World::plan_tick(Process& process, bool service) {
    if (!process.alive || (service ? process.closed.has_value() : process.exit.has_value())) return;
    Time& planned = service ? process.service_tick : process.agent_tick;
    const Time wanted = service ? process.service->next_deadline() : process.agent->next_deadline();
    if (wanted == planned) return;
    planned = wanted;
    if (wanted == kNever) return;
    // One microsecond at least, so that time goes on. A timer is never exact: it comes up to 0.0005
    // of a lease late.
    const Time when = std::max(host_of(process).clock.truth(wanted), now() + microseconds{1}) +
                      random_.span({}, lease(0.0005));
    clock_.at(when, [this, &process, service, wanted] {
        deliver(process, true, [this, &process, service, wanted] {
            Time& planned = service ? process.service_tick : process.agent_tick;
            if (planned != wanted) return;
            // The machine may want a Tick at the same moment again. With kLongAgo that counts as a
            // new wish.
            planned = kLongAgo;
            if (service)
                step_service(process, rendezvous::Tick{});
            else
                step_agent(process, agent::Tick{});
        });
    });
}

// What agent/node/runner.cc does for a real agent.
void World::perform(Process& process, const agent::Effects& effects) {
    Host& host = host_of(process);
    for (const agent::Effect& effect : effects) {
        trace(host, "agent > " + describe(effect));
        if (const auto* asked = std::get_if<agent::Connect>(&effect)) {
            connect(process, *asked);
        } else if (const auto* lead = std::get_if<agent::Lead>(&effect)) {
            post_service(process, leads_from(lead->self));
        } else if (const auto* heard = std::get_if<agent::LeaderHeard>(&effect)) {
            post_service(process, rendezvous::LeaderHeard{heard->leader});
        } else if (const auto* message = std::get_if<agent::SendMessage>(&effect)) {
            if (process.link_up) say(process.connection, message->message);
        } else if (const auto* deadline = std::get_if<agent::SetDeadline>(&effect)) {
            process.keeper->set_deadline(deadline->deadline);
        } else if (const auto* store = std::get_if<agent::OpenStore>(&effect)) {
            process.store = store->place.generation;
        } else if (const auto* spawn = std::get_if<agent::Spawn>(&effect)) {
            process.keeper->spawn(spawn->place);
        } else if (const auto* signal = std::get_if<agent::SignalWorkers>(&effect)) {
            process.keeper->signal(signal->signal);
        } else if (const auto* wanted = std::get_if<agent::AskSnapshot>(&effect)) {
            ask_snapshot(process, wanted->hint);
        } else if (const auto* asked = std::get_if<agent::ExamineWorkers>(&effect)) {
            examine(process, *asked);
        } else if (const auto* sweep = std::get_if<agent::Sweep>(&effect)) {
            process.keeper->sweep(sweep->generation);
        } else if (std::holds_alternative<agent::CloseStore>(effect)) {
            process.store = kNoGeneration;
        } else if (const auto* exit = std::get_if<agent::Exit>(&effect)) {
            invariants_.exited(process, exit->ending);
            process.exit = exit->ending;
            process.exited_at = now();
            end_process(process);
            break;
        }
    }
}

// What the rendezvous service does for a real machine.
void World::perform(Process& process, const rendezvous::Effects& effects) {
    for (const rendezvous::Effect& effect : effects) {
        trace(host_of(process), "service > " + describe(effect));
        if (const auto* send = std::get_if<rendezvous::Send>(&effect)) {
            const int connection = static_cast<int>(send->session.value);
            if (const auto* end = std::get_if<rendezvous::Finished>(&send->message))
                process.told = end->ending;
            if (connection < 0) continue;  // a keeper's last word has no connection back
            Process& node = *ends_.at(connection).first;
            if (std::holds_alternative<rendezvous::Assigned>(send->message))
                invariants_.assigned(process, host_of(node).name);
            if (!std::holds_alternative<rendezvous::Ack>(send->message) &&
                !std::holds_alternative<rendezvous::Welcome>(send->message))
                ++told_;
            answer_for_silent(process, connection, send->message);
            network_.send(connection, kLeader, [this, &node, connection, said = send->message] {
                deliver(node, false,
                        [this, &node, connection, said] { came(node, connection, said); });
            });
        } else if (const auto* call = std::get_if<rendezvous::Call>(&effect)) {
            probe(process, *call);
        } else if (const auto* standby = std::get_if<rendezvous::Standby>(&effect)) {
            stand_by(process, standby->peer);
        } else if (const auto* close = std::get_if<rendezvous::Close>(&effect)) {
            network_.close(static_cast<int>(close->session.value), kLeader);
        } else if (ask_ledger(process, effect)) {
            continue;
        } else if (std::holds_alternative<rendezvous::Requeue>(effect)) {
            invariants_.requeued(process);
            clock_.after(lease(0.01),
                         [this, &process] { post_service(process, rendezvous::Requeued{}); });
        } else if (const auto* ask = std::get_if<rendezvous::AskNodeStates>(&effect)) {
            answer_for_slurm(process, *ask);
        } else if (const auto* closed = std::get_if<rendezvous::Closed>(&effect)) {
            process.closed = closed->ending;
            process.closed_at = now();
            close_leader_side(process);
            end_process(process);
            break;
        }
    }
}

// Slurm is an unsafe source: it may not answer, it knows of a lost host late or not, and it drains
// hosts that are well. The job must stay safe whatever it says.
void World::answer_for_slurm(Process& process, const rendezvous::AskNodeStates& ask) {
    if (random_.chance(0.2)) return;
    rendezvous::OutOfService said;
    for (const std::string& name : ask.hosts) {
        const auto host = std::ranges::find(hosts_, name, &Host::name);
        if (host != hosts_.end() && !host->up && random_.chance(0.7))
            said.nodes[name] = "down";
        else if (random_.chance(0.1))
            said.nodes[name] = "drained";
    }
    clock_.after(random_.span({}, lease(1)),
                 [this, &process, said] { post_service(process, said); });
}

// A process ends when its agent has exited and its service has closed, if it leads: a leader stays
// to tell the end to the others, unless it leaves a job that goes on.
void World::end_process(Process& process) {
    if (process.exit && process.connection >= 0) {
        network_.close(process.connection, kNode);
        process.connection = -1;
        process.link_up = false;
    }
    const bool left = process.exit && process.exit->verdict == rendezvous::Verdict::left;
    if (process.agent && (!process.exit || (process.leads() && !process.closed && !left))) return;
    close_leader_side(process);
    process.alive = false;
    trace(host_of(process), "ddprun ends");
}

}  // namespace ddprun::sim
