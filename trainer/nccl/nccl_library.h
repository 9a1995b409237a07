// The functions of NCCL, loaded at run time. libnccl.so.2 has 218 MB, and a worker on CPUs should
// not need it on its machine.
//
// It is loaded once, at the first use, and stays loaded. Thread-safe. This file is compiled only if
// the build has CUDA.
#pragma once

#include <nccl.h>

#include "base/error.h"

namespace ddprun::trainer {

// The types come from nccl.h, so a wrong signature does not compile.
struct NcclLibrary {
    decltype(&::ncclGetVersion) get_version = nullptr;
    decltype(&::ncclGetUniqueId) get_unique_id = nullptr;
    decltype(&::ncclCommInitRankConfig) comm_init = nullptr;
    decltype(&::ncclCommGetAsyncError) comm_async_error = nullptr;
    decltype(&::ncclCommFinalize) comm_finalize = nullptr;
    decltype(&::ncclCommDestroy) comm_destroy = nullptr;
    decltype(&::ncclCommAbort) comm_abort = nullptr;
    decltype(&::ncclCommSplit) comm_split = nullptr;
    decltype(&::ncclCommCount) comm_count = nullptr;
    decltype(&::ncclGroupStart) group_start = nullptr;
    decltype(&::ncclGroupEnd) group_end = nullptr;
    decltype(&::ncclAllReduce) all_reduce = nullptr;
    decltype(&::ncclBroadcast) broadcast = nullptr;
    decltype(&::ncclReduce) reduce = nullptr;
    decltype(&::ncclAllGather) all_gather = nullptr;
    decltype(&::ncclReduceScatter) reduce_scatter = nullptr;
    decltype(&::ncclGather) gather = nullptr;
    decltype(&::ncclScatter) scatter = nullptr;
    decltype(&::ncclAlltoAll) all_to_all = nullptr;
    decltype(&::ncclSend) send = nullptr;
    decltype(&::ncclRecv) receive = nullptr;
    decltype(&::ncclGetErrorString) error_string = nullptr;
    decltype(&::ncclGetLastError) last_error = nullptr;
};

// The loaded library. Errors: unavailable (not found, a function is missing, or it is older than
// the nccl.h of the build).
Result<const NcclLibrary*> nccl_library();

}  // namespace ddprun::trainer
