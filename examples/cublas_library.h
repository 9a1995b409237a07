// cuBLAS's functions, found at run time: libcublas and libcublasLt are 600 MB that a CPU worker
// need not have on its machine, and `train` starts without them.
//
// Loaded once, on first use, and never unloaded. Only compiled when the build has CUDA.
#pragma once

#include <cublas_v2.h>

#include "base/error.h"

namespace example {

struct CublasLibrary {
    decltype(&::cublasCreate_v2) create = nullptr;
    decltype(&::cublasDestroy_v2) destroy = nullptr;
    decltype(&::cublasSgemm_v2) sgemm = nullptr;
    decltype(&::cublasGetStatusString) status_string = nullptr;
};

// Errors: unavailable (no library, or a function missing).
ddprun::Result<const CublasLibrary*> cublas_library();

}  // namespace example
