// A process group over MPI, on CPUs, for clusters whose network MPI knows best: MPICH, Intel MPI or
// MVAPICH under `ddprun --pmi`. A program links ddprun::trainer_mpi and calls this function in
// place of make_process_group(), so that a program without MPI needs none.
//
// What process_group.h says holds for it too. Besides:
//
//   Failure: after it, or after abort(), nothing of MPI is called any more in this process, also
//   for other groups; the program should end, and must not call MPI_Finalize(). A lost rank is
//   noticed while a call waits. UCX, below MPICH, then sometimes ends this process itself (SIGABRT,
//   with its own message): where it copies a large message from the memory of a rank of the same
//   host that has died. MPI has no way out of split() itself: there it is ddprun that ends the
//   others.
//   Agreement: MPI does not compare sizes. Ranks that make other calls after the first ones were
//   compared are named after a second if MPI waits; else they may get an error or wrong values.
//   End: the group that has initialised MPI waits, when it is destroyed, for the other ranks to
//   destroy theirs, at most for the time-out, and its process finalises MPI. Then no new group can
//   be made. MPI_Finalize() itself may hang in the network below MPI, and has no way out: after the
//   time-out the process ends, with a line, the launcher's error file and exit code 1. A program
//   that wants it otherwise calls MPI_Init_thread() itself, with MPI_THREAD_SERIALIZED
//   (MPI_THREAD_MULTIPLE, if it calls MPI beside the group), and MPI_Finalize() when all groups are
//   gone.
//   Waiting: a call that waits looks for its messages without a pause for 2 ms, then every 50 µs.
//   Size: at most 2^31 - 1 elements for each rank in a call (usage).
#pragma once

#include <memory>

#include "trainer/group/process_group.h"

namespace ddprun::trainer {

// Meets the other ranks in the store, initialises MPI if nobody has, and makes a communicator. All
// ranks call it, with the same options; their ranks must be those that MPI knows. Errors: usage
// (options ask for NCCL), timed_out (names the rank that did not come), refused (MPI knows other
// ranks: the program was not started with --pmi; it was finalised; it was initialised for one
// thread), unavailable, closed.
Result<std::unique_ptr<ProcessGroup>> make_mpi_group(const Context& context, Store& store,
                                                     const GroupOptions& options = {});

}  // namespace ddprun::trainer
