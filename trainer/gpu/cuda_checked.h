// A CUDA error as ours. For the sources that use the CUDA runtime.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "base/error.h"

namespace ddprun::trainer {

// `what` names the failed step for the reader of the message.
inline Result<void> checked(cudaError_t problem, const char* what) {
    if (problem == cudaSuccess) return {};
    return Error(ErrorCode::unavailable, std::string(what) + ": " + cudaGetErrorString(problem));
}

}  // namespace ddprun::trainer
