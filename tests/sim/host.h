// What stands on one virtual host: its clock, its ddprun processes one after the other, the keeper
// of each, and the workers. Plain state; World and Keeper move it.
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

// How a worker lives when nobody disturbs it.
struct Behaviour {
    Duration life{};              // until it ends by itself
    int exit_code = 0;            // with this
    bool stubborn = false;        // does not end at SIGTERM
    std::int64_t stands_at = -1;  // reports this step, and then nobody moves any more; -1: never
};

struct Worker {
    std::int64_t pid = 0;
    Incarnation owner;  // of the ddprun that asked for it
    Generation generation = kNoGeneration;
    int rank = 0;
    int local_rank = 0;
    Behaviour behaviour;
    bool alive = false;
    bool dying = false;      // a kill is under way
    bool told_stop = false;  // SIGTERM was sent
};

class Keeper;

struct Pending {
    bool tick = false;
    std::function<void()> run;
};

// One ddprun: an agent machine and a rendezvous machine, which is dormant where it does not lead.
struct Process {
    int host = 0;
    rendezvous::NodeId id;
    bool alive = true;
    Time frozen_until{};        // true time, as all times here but those of machines
    std::deque<Pending> inbox;  // what came while it could not run

    std::optional<agent::Machine> agent;
    Time agent_tick = kNever;
    int connection = -1;
    bool link_up = false;         // somebody has answered our Hello
    agent::Connect asked;         // the newest
    int tried = 0;                // candidates of it
    int standby = -1;             // connection to who leads next
    Time first_welcome = kNever;  // by a leader
    int attempt = 0;              // number of the newest Connect
    Time call_until = kNever;     // its deadline, on the host's clock
    bool signalled = false;       // told to stop by its user
    std::optional<rendezvous::Ending> exit;
    Time exited_at = kNever;
    Generation store = kNoGeneration;  // open store, on the node of rank 0

    std::optional<rendezvous::Machine> service;
    Time service_tick = kNever;
    std::optional<rendezvous::Ending> told;  // the end that it has sent out
    std::optional<rendezvous::Ending> closed;
    Time closed_at = kNever;
    std::unique_ptr<Keeper> keeper;

    bool leads() const {
        return service && service->snapshot().phase != rendezvous::Phase::dormant;
    }
};

struct Host {
    int index = 0;
    std::string name;
    NodeClock clock{Duration{}, 0};
    bool up = true;
    Time paused_until{};
    Time resumed_at = kLongAgo;
    bool resumed_stale = false;  // its deadline had passed while it was paused
    Process* process = nullptr;  // the newest
    std::vector<Worker> workers;
    Time disturbed_until =
        kLongAgo;  // by a pause, a freeze, a cut connection; for the judgement at the end
};

}  // namespace ddprun::sim
