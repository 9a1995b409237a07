// The state of one virtual host: its clock, its ddprun processes one after the other, the keeper of
// each, and the workers. Plain state; World and Keeper change it.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/machine/machine.h"
#include "rendezvous/machine/machine.h"
#include "tests/sim/clock.h"

namespace ddprun::sim {

// What a worker does when nothing disturbs it. The default is a worker that works for `life` and
// exits 0.
struct Behaviour {
    Duration life{};              // until it ends by itself; max(): it never does
    int exit_code = 0;            // the code with which it then ends
    bool stubborn = false;        // does not end at SIGTERM
    std::int64_t stands_at = -1;  // reports this step, and then no rank moves any more; -1: never
};

// A worker process. It is in Host::workers from the fork until it is reaped.
struct Worker {
    std::int64_t pid = 0;
    Incarnation owner;  // the ddprun that asked for it
    Generation generation = kNoGeneration;
    int rank = 0;
    int local_rank = 0;
    Behaviour behaviour;
    bool alive = false;      // exec has happened
    bool dying = false;      // a kill is under way
    bool told_stop = false;  // SIGTERM was sent
    bool differs = false;    // a cold start would not be like it
};

class Behind;
class Keeper;

// Something that arrived while its process could not run. `tick`: it is a timer and no message.
struct Pending {
    bool tick = false;
    std::function<void()> run;
};

// One ddprun: an agent machine and a rendezvous machine, which is dormant where it does not lead. A
// ddprun-rendezvous has no agent. A
// process is never removed: the invariants ask at the end how each of them ended.
struct Process {
    int host = 0;
    rendezvous::NodeId id;
    bool alive = true;
    Time frozen_until{};        // true time, like all times here except those of machines
    std::deque<Pending> inbox;  // what came while it could not run

    std::optional<agent::Machine> agent;
    Time agent_tick = kNever;     // the Tick that the agent's machine has asked for
    int connection = -1;          // to the leader; -1: none
    bool link_up = false;         // the other side has answered our Hello
    agent::Connect asked;         // the newest request to connect
    int tried = 0;                // how many candidates of it were tried
    int standby = -1;             // the leader's connection to its successor
    Time first_welcome = kNever;  // when a leader welcomed it for the first time
    int attempt = 0;              // number of the newest Connect
    Time call_until = kNever;     // its deadline, on the host's clock
    bool signalled = false;       // its user has asked it to stop
    std::optional<rendezvous::Ending> exit;
    Time exited_at = kNever;
    Generation store = kNoGeneration;  // open store, on the node of rank 0

    std::unique_ptr<Behind> behind;  // its ledger, if that is written behind its start
    std::optional<rendezvous::Machine> service;
    Time service_tick = kNever;
    std::optional<rendezvous::Ending> told;  // the end that it has sent to others
    std::optional<rendezvous::Ending> closed;
    Time closed_at = kNever;
    std::unique_ptr<Keeper> keeper;

    // From the first step of leading until it yields or the process ends.
    bool leads() const {
        return service && service->snapshot().phase != rendezvous::Phase::dormant;
    }
};

// A place for one ddprun. Usually that is a host. Two ddpruns on one host are two of these, with
// one name. A host goes down once and stays down. A pause stops everything on it, while its clock
// goes on.
struct Host {
    int index = 0;
    std::string name;
    int allocation = 0;    // SLURM_RESTART_COUNT of its ddprun
    int place = 0;         // its node rank; 0: its ddprun leads at the start
    bool outside = false;  // it has a ddprun-rendezvous and no workers
    NodeClock clock{Duration{}, 0};
    bool up = true;
    Time paused_until{};
    Time resumed_at = kLongAgo;
    Time stood_until = kLongAgo;  // it or its ddprun, for the last time
    bool resumed_stale = false;   // its deadline had passed during the pause
    Process* process = nullptr;   // the newest ddprun; null before the first
    std::vector<Worker> workers;
    Time disturbed_until =
        kLongAgo;  // by a pause, a freeze, a cut connection; for the judgement at the end
};

}  // namespace ddprun::sim
