// What goes wrong in a virtual job, and when: a plan of faults from a seed. Plain values;
// World::apply makes them happen.
#pragma once

#include <string>
#include <vector>

#include "tests/sim/clock.h"

namespace ddprun::sim {

struct Fault {
    enum class Kind {
        worker_fails,      // one of the node's workers exits with 1..9; see WorldConfig::in_slurm
        workers_stubborn,  // they do not end at SIGTERM
        keeper_dies,       // alone; ddprun kills what it left and starts another
        stop_asked,        // a user's SIGTERM to this ddprun; with `lasts` SIGUSR1, to requeue
        process_killed,    // ddprun dies, its keeper says Gone
        process_replaced,  // the same, and a new ddprun comes on that host after `lasts`
        step_killed,       // ddprun, keeper and workers at once: nobody says anything, ports close
        host_lost,         // nobody says anything
        host_paused,       // all on it stands still
        process_frozen,    // ddprun stands still, keeper and workers go on
        connection_dropped,  // between node and leader
        cut_off,             // nothing passes between this host and all others, both ways
        cut_from_others,     // it hears nothing
        cut_to_others,       // it is not heard
        split,               // nothing passes between the hosts up to this one and those behind it
        split_one_way,       // nothing passes from the ones to the others
        host_refuses,        // a firewall answers with resets whatever others send it
        ledger_stalls,       // for all
        ledger_stalls_here,  // for this host
    };
    Kind kind = Kind::worker_fails;
    Time at{};
    int host = 0;
    Duration lasts{};
};

const char* to_string(Fault::Kind kind);
std::string to_text(const Fault& fault);

// Some faults of some kinds within `horizon`, half of the time close together.
std::vector<Fault> plan_faults(Random& random, int hosts, Duration lease, Duration horizon);

}  // namespace ddprun::sim
