// A process group for programs that use libtorch: on CPUs over the Gloo inside libtorch, on GPUs
// over NCCL (trainer/nccl). A program must not link Debian's Gloo (trainer/backend) and PyTorch's
// libtorch: both have the same names with other contents, and it crashes. So such programs call
// this function and not make_process_group().
//
// What process_group.h says holds for it too. libtorch's Gloo sometimes forgets a send whose
// connection breaks. So a call is given up two seconds after the group has failed; its thread is
// left behind, and the program should end. Nor does it keep messages of two calls apart: ranks that
// make calls of other sizes, after the first calls were compared, end by its message about sizes
// (SIGABRT). Calls of equal size in another order are named after a second.
#pragma once

#include <memory>

#include "trainer/group/process_group.h"

namespace ddprun::trainer {

// Meets the other ranks in the store, agrees with them on the backend, and connects. All ranks call
// it with the same options. Automatic: NCCL if every rank has its own GPU, else Gloo.
// GLOO_SOCKET_IFNAME names the network interface. Errors: timed_out (names the rank that did not
// come), refused (NCCL cannot be used), unavailable, closed.
Result<std::unique_ptr<ProcessGroup>> make_torch_group(const Context& context, Store& store,
                                                       const GroupOptions& options = {});

}  // namespace ddprun::trainer
