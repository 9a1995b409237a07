// The functions of NCCL, loaded at run time. libnccl.so.2 has 218 MB, and a worker on CPUs should
// not need it on its machine.
//
// It is loaded once, at the first use, and stays loaded. Thread-safe.
#pragma once

#include <string>

#include "base/error.h"
#include "trainer/nccl/nccl_api.h"

namespace ddprun::trainer {

// The loaded library. Errors: unavailable (not found, too old, or a function is missing).
Result<const nccl::Functions*> nccl_library();

// The rule for a library that was found at `path`. Pure. `missing` is a function that it lacks, or
// empty. Errors: unavailable, with the version, the path, and what to do.
Result<void> check_nccl(int version, const std::string& path, const std::string& missing);

}  // namespace ddprun::trainer
