// What workers that stand still are doing, as their node sees it from outside. Pure values.
//
// A worker stands still when nothing that others wait for has come from it for a while: it has been
// in the same collective operation, or in none, in all samples of that time. Nodes tell it in their
// Beats, and the leader judges it (hangs/standstill.h).
#pragma once

#include <cstdint>

#include "base/time.h"

namespace ddprun::rendezvous {

// What a worker that stands still is doing.
enum class Doing {
    waits,            // in the kernel, for anything else than what is below
    in_collective,    // a thread of Gloo waits for the other ranks
    meets,            // it is in init_process_group() or new_group(), which end when all have come
    computes,         // its main thread runs
    sleeps,           // in a timer
    reads,            // from a file, a pipe or a socket
    writes,           // to one
    waits_for_child,  // a process that it has started
    hangs_in_kernel,  // in an uninterruptible sleep (D)
    is_stopped,       // by a signal (T)
    has_ended,
};

// Workers of one node that stand still in the same way.
struct Still {
    std::uint64_t workers = 0;  // a bit for each, the lowest for the first of its node's ranks
    Doing doing = Doing::waits;
    // For how long all of them have; those that meet: since the first of them has come.
    Duration lasted{};
    Duration usual{};         // the longest of them usually goes so long without any move
    std::uint32_t place = 0;  // a hash of function and line where they are; 0: not known
    // Outside of a collective: for how long nothing at all has moved in any of them.
    Duration unmoved{};
    // In a collective: hashes of two addresses between which nothing is acknowledged; 0: there are
    // none.
    std::uint32_t lost_from = 0, lost_to = 0;
    bool operator==(const Still&) const = default;
};
// How much of a minute the workers of one node were outside of collectives.
struct Pace {
    int outside = 0;  // percent of the time, of the worker that was most; 0: not known
    int slowest = 0;  // that worker, counted from the first of its node
    int others = 0;   // the median of the node's other workers, 1 or more; 0: there are none
    bool operator==(const Pace&) const = default;
};
// Workers of a node that are watched, and kinds of standing still that a Beat tells.
inline constexpr int kStillWorkers = 64;
inline constexpr std::size_t kStillKinds = 4;

}  // namespace ddprun::rendezvous
