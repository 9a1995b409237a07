// How nodes reach each other's services in a virtual job: calls, links, probes, and the standby
// connection of a leader. It models rendezvous/link/client_call.cc, with the delays and failures of
// the virtual network.
#include <algorithm>

#include "tests/sim/world.h"

namespace ddprun::sim {
namespace {

std::string address_of(int host) { return "10.0.0." + std::to_string(host + 1); }

}  // namespace

// Which host has an address, for a process on the host `from`.
int World::host_at(const std::string& address, int from) const {
    if (address == kOfEachHost) return from;
    for (const Host& host : hosts_)
        if (address_of(host.index) == address) return host.index;
    return 0;
}

// What a new connection from one host to the service of another meets at this moment. A SYN needs
// the way there, its answer the way back.
World::Reached World::reach(int from, int to) {
    Host& there = hosts_[to];
    if (from != to && there.up && network_.refuses(to) && network_.reachable(to, from))
        return Reached::refusal;
    if (!there.up || paused(there) || !network_.reachable(from, to) ||
        !network_.reachable(to, from))
        return Reached::nobody;
    // Without ddprun its keeper may still have the listening socket. Without both, the kernel
    // refuses.
    if (there.process && there.process->alive) return Reached::service;
    return there.process && there.process->keeper->holds_port() ? Reached::keeper
                                                                : Reached::refusal;
}

// As the real client: it says Hello on each connection, and its link is up when that is answered.
// With an endpoint it calls again and again, and all hosts are candidates. A named peer is called
// once.
void World::connect(Process& process, const agent::Connect& connect) {
    if (process.connection >= 0) network_.close(process.connection, kNode);
    process.connection = -1;
    process.link_up = false;
    process.asked = connect;
    process.tried = 0;
    // Events of older attempts find another number and do nothing.
    const int attempt = ++process.attempt;
    clock_.after(random_.span({}, lease(0.0005)),
                 [=, this, &process] { try_connect(process, attempt); });
    if (connect.deadline != kNever)
        clock_.at(host_of(process).clock.truth(connect.deadline),
                  [=, this, &process] { give_up(process, attempt); });
}

// The deadline of an attempt. It is a timer of the process, so a frozen process learns it late.
void World::give_up(Process& process, int attempt) {
    deliver(process, true, [=, this, &process] {
        if (process.exit || attempt != process.attempt || process.link_up) return;
        if (process.connection >= 0) network_.close(process.connection, kNode);
        process.connection = -1;
        ++process.attempt;
        step_agent(process, agent::LinkLost{"nobody answered"});
    });
}

// This candidate did not answer: the next one comes, or, with a single call, the end.
void World::try_next(Process& process, int attempt) {
    if (process.asked.once)
        return clock_.after({}, [=, this, &process] { give_up(process, attempt); });
    ++process.tried;
    clock_.after(random_.span(lease(0.01), lease(0.05)),
                 [=, this, &process] { try_connect(process, attempt); });
}

// Itself, the named host, or the endpoint: any host of the allocation in turn, or the rendezvous
// outside. The named host is called once, or first.
int World::called_by(const Process& process) const {
    const agent::Connect& asked = process.asked;
    if (asked.self) return process.host;
    const bool named = !asked.address.empty();
    if (named && (asked.once || process.tried == 0)) return host_at(asked.address, process.host);
    if (config_.outside > 0)
        return host_count() - 1 - (process.attempt + process.tried) % config_.outside;
    const int first = restart_count(process.host) * config_.hosts;
    return first + (process.tried - (named ? 1 : 0)) % config_.hosts;
}

void World::try_connect(Process& process, int attempt) {
    Host& host = host_of(process);
    if (!process.alive || !host.up || process.exit || attempt != process.attempt) return;
    if (paused(host) || frozen(process)) {
        clock_.at(std::max(host.paused_until, process.frozen_until),
                  [=, this, &process] { try_connect(process, attempt); });
        return;
    }
    const int to = called_by(process);
    switch (reach(host.index, to)) {
        case Reached::service:
            if (to == host.index && !process.asked.self) return try_next(process, attempt);
            return call(process, attempt, *hosts_[to].process);
        case Reached::refusal:
            return try_next(process, attempt);
        // The caller waits until its deadline.
        case Reached::nobody:
            if (!process.asked.once) try_next(process, attempt);
            return;
        // The keeper's socket takes the connection, and ends it when the keeper goes. Then the
        // caller tries again.
        case Reached::keeper:
            clock_.after(lease(0.005), [=, this, &process] {
                if (attempt == process.attempt) try_connect(process, attempt);
            });
    }
}

void World::call(Process& process, int attempt, Process& leader) {
    // The number of the connection is also the number of the session.
    const int connection = network_.open(process.host, leader.host);
    ends_.emplace_back(&process, &leader);
    process.connection = connection;
    const rendezvous::Hello hello = process.asked.hello;
    clock_.after(network_.delay(process.host, leader.host), [=, this, &process] {
        if (process.connection == connection) say(connection, hello);
    });
    if (config_.strays > 0 && random_.chance(config_.strays)) stray(process, leader, hello);
    // A service that takes the call and says nothing is passed over after 5 leases.
    clock_.after(lease(5), [=, this, &process] {
        if (process.connection != connection || process.link_up) return;
        network_.close(connection, kNode);
        process.connection = -1;
        try_next(process, attempt);
    });
}

// A second connection of the same process, which its client has given up. The Hello on it may come
// before or after the one that counts.
void World::stray(Process& process, Process& leader, const rendezvous::Hello& hello) {
    const int connection = network_.open(process.host, leader.host);
    ends_.emplace_back(&process, &leader);
    clock_.after(random_.span({}, lease(0.3)), [this, connection, hello] {
        say(connection, hello);
        clock_.after(random_.span({}, lease(1)),
                     [this, connection] { network_.close(connection, kNode); });
    });
}

void World::say(int connection, rendezvous::ToLeader message) {
    // The link of a real node adds the mark of the ledger that it has found.
    if (auto* join = std::get_if<rendezvous::Join>(&message);
        join && config_.succession && !is_blind(ends_[connection].first->host))
        join->ledger_mark = kMark;
    mutate(message);
    note_beat(connection, message);
    // For the test that a node sends few messages: Beats come at intervals, and an opening belongs
    // to a connection. Both are left out.
    if (!std::holds_alternative<rendezvous::Beat>(message) && !rendezvous::caller_of(message))
        ++said_[ends_[connection].first->id.name];
    network_.send(connection, kNode, [this, connection, message = std::move(message)] {
        Process& leader = *leader_of(connection);
        deliver(leader, false, [this, &leader, connection, message] {
            step_service(leader, rendezvous::Came{rendezvous::Session{connection}, message});
        });
    });
}

// A message has reached a node. It may be the answer to a call of its service, or from a connection
// that it has left.
void World::came(Process& node, int connection, const rendezvous::ToNode& message) {
    if (const auto probe = probes_.find(connection); probe != probes_.end()) {
        if (const auto* standing = std::get_if<rendezvous::Standing>(&message))
            probed(connection, *standing);
        return;
    }
    if (node.connection != connection || node.exit) return;
    if (!node.link_up) {
        node.link_up = true;
        step_agent(node, agent::LinkUp{address_of(node.host)});
    }
    if (node.connection != connection) return;
    if (std::get_if<rendezvous::Welcome>(&message)) {
        node.first_welcome = std::min(node.first_welcome, now());
        step_agent(node, agent::LedgerFound{!is_blind(node.host)});
    }
    rendezvous::ToNode said = message;
    mutate(node, connection, said);
    step_agent(node, agent::MessageCame{said});
}

// One side has learned that its connection is gone. The two sides learn it at different times.
void World::connection_ended(int connection, Side side) {
    Process& process = side == kNode ? *ends_[connection].first : *ends_[connection].second;
    if (side == kNode && probes_.contains(connection)) return probed(connection, std::nullopt);
    deliver(process, false, [this, &process, connection, side] {
        if (side == kLeader) {
            step_service(process, rendezvous::ConnectionLost{rendezvous::Session{connection}});
            take_refusal_for_proof(process, *ends_[connection].first);
        } else if (process.connection == connection) {
            process.connection = -1;
            if (!process.link_up) return try_next(process, process.attempt);
            process.link_up = false;
            step_agent(process, agent::LinkLost{"the connection ended"});
        }
    });
}

void World::close_leader_side(const Process& process) {
    for (std::size_t i = 0; i < ends_.size(); ++i)
        if (ends_[i].second == &process) network_.close(static_cast<int>(i), kLeader);
}

// A service asks another one who it is and whether it leads (Inquire). An answer that does not come
// in time is dropped.
void World::probe(Process& process, const rendezvous::Call& call) {
    const int to = host_at(call.peer.address, process.host);
    clock_.after(network_.delay(process.host, to), [=, this, &process] {
        if (!process.alive || !host_of(process).up || paused(host_of(process)) ||
            reach(process.host, to) != Reached::service)
            return;
        const int connection = network_.open(process.host, to);
        ends_.emplace_back(&process, hosts_[to].process);
        probes_[connection] = {&process, call.peer.node};
        say(connection, rendezvous::Inquire{});
        clock_.after(call.within, [=, this] { probed(connection, std::nullopt); });
    });
}

// The call is answered, or has ended without an answer. Only the first of both counts.
void World::probed(int connection, const std::optional<rendezvous::Standing>& standing) {
    const auto found = probes_.find(connection);
    if (found == probes_.end() || !found->second.first) return;
    Process& process = *found->second.first;
    const rendezvous::NodeId node = found->second.second;
    found->second.first = nullptr;
    network_.close(connection, kNode);
    if (standing) post_service(process, rendezvous::Called{node, *standing});
}

// The leader keeps a silent connection to its successor. On it the leader's keeper says Gone.
void World::stand_by(Process& process, const std::optional<rendezvous::Peer>& peer) {
    if (process.standby >= 0) network_.close(process.standby, kNode);
    process.standby = -1;
    if (!peer) return;
    const int to = host_at(peer->address, process.host);
    if (reach(process.host, to) != Reached::service) return;
    process.standby = network_.open(process.host, to);
    ends_.emplace_back(&process, hosts_[to].process);
    probes_[process.standby] = {nullptr, {}};  // nobody waits for what comes back
}

// Gone goes to the leader, and on the leader's host to its successor, over the connection that
// ddprun had.
void World::keeper_says_gone(Process& process, int connection) {
    trace(host_of(process), "keeper: gone");
    for (const int each : {connection, process.standby}) {
        if (each < 0 || !network_.is_open(each, kNode)) continue;
        say(each, rendezvous::Gone{process.id});
        network_.close(each, kNode);
    }
}

void World::post_service(Process& process, rendezvous::Event event) {
    deliver(process, false, [this, &process, event] { step_service(process, event); });
}

}  // namespace ddprun::sim
