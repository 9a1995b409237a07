// How far a generation has got, as far as a restart depends on it (restart_policy.h). A generation
// only goes forward, so of two reports the higher one counts.
#pragma once

namespace ddprun::rendezvous {

enum class Reach : int {
    start,       // its worker processes have not all met
    met,         // they have: all have called the store, or none ever calls it (headway.h)
    progressed,  // a worker has reported progress, or they have lived a minute since they met
};

}  // namespace ddprun::rendezvous
