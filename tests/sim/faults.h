// What goes wrong in a virtual job, and when: a plan of faults, drawn from a seed or written by a
// test. Plain values; World::apply makes them happen.
#pragma once

#include <string>
#include <vector>

#include "rendezvous/model/model.h"
#include "tests/sim/clock.h"

namespace ddprun::sim {

// One fault. `at` is true time. Only faults that need it use `lasts`: pauses, cuts, stalls, and the
// time until a new ddprun comes.
struct Fault {
    enum class Kind {
        worker_fails,        // one of the node's workers exits with 1..9; see WorldConfig::in_slurm
        workers_stubborn,    // its workers do not end at SIGTERM
        keeper_dies,         // the keeper alone; ddprun kills the workers and starts another
        keeper_freezes,      // it stands still until ddprun, which runs, kills it
        stop_asked,          // a user's SIGTERM to this ddprun; with `lasts` SIGUSR1, to requeue
        process_killed,      // ddprun dies; its keeper says Gone
        process_replaced,    // the same, and a new ddprun comes on that host after `lasts`
        step_killed,         // ddprun, keeper and workers at once: no Gone, but the ports close
        host_lost,           // power off: no Gone, no closed port, only silence
        host_paused,         // everything on it stands still
        host_suspended,      // a virtual machine: its clock stands still, too
        process_frozen,      // ddprun stands still; keeper and workers continue
        connection_dropped,  // between node and leader
        connection_reset,    // the same, and the node learns it at once
        cut_off,             // nothing passes between this host and all others, both ways
        cut_from_others,     // the others reach it no more; it still reaches them
        cut_to_others,       // it is not heard
        split,               // nothing passes between the hosts up to this one and those behind it
        split_one_way,       // nothing passes from the ones to the others
        host_refuses,        // a firewall answers with resets whatever others send it
        ledger_stalls,       // for all
        entry_vanishes,      // somebody removes an entry of the ledger that is not the newest
        ledger_stalls_here,  // for this host
        // What operators ask of every process that leads then, more than one if there are. With
        // `lasts` the same request is repeated after that time. They are drawn apart
        // (plan_operators).
        operator_stops,
        operator_restarts,       // the generation that this leader knows
        operator_drains,         // this host
        operator_sets_limits,    // limits_of(host)
        operator_asks_snapshot,  // of the generation that runs
        operator_stops_later,    // after a snapshot
        warm_start_differs,      // one of the node's workers finds that it is not like a cold one
        job_suspended,           // all hosts stand still; each goes on up to 0.1 leases later
    };
    Kind kind = Kind::worker_fails;
    Time at{};
    int host = 0;
    Duration lasts{};
};

const char* to_string(Fault::Kind kind);
// What operator_sets_limits asks for with this host: 1 to 1 nodes, 1 to 2, 2 to 3, 2 to 4, … For
// every second one also a budget of restarts.
rendezvous::OperatorLimits limits_of(int host);
std::string to_text(const Fault& fault);

// Draws some faults of some kinds within `horizon`. In half of the plans they happen close
// together, so that the second one meets a job that still handles the first.
std::vector<Fault> plan_faults(Random& random, int hosts, Duration lease, Duration horizon);

// Draws what operators ask within `horizon`: nothing in half of the jobs.
std::vector<Fault> plan_operators(Random& random, int hosts, Duration horizon);
// The same of what they ask of a job that goes on: limits and snapshots.
std::vector<Fault> plan_wishes(Random& random, int hosts, Duration horizon);

}  // namespace ddprun::sim
