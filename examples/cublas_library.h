// The functions of cuBLAS, loaded at run time. libcublas and libcublasLt have 600 MB. A worker on
// CPUs should not need them, and `train` starts without them.
//
// They are loaded once, at the first use, and stay loaded. This file is compiled only if the build
// has CUDA.
#pragma once

#include <cublas_v2.h>

#include "base/error.h"

namespace example {

// The header overloads this one, so its type is written out. A wrong one does not compile.
using GemmStridedBatched = cublasStatus_t (*)(
    cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n, int k, const void* alpha,
    const void* a, cudaDataType, int lda, long long, const void* b, cudaDataType, int ldb,
    long long, const void* beta, void* c, cudaDataType, int ldc, long long, int count,
    cublasComputeType_t, cublasGemmAlgo_t);

// The types come from cublas_v2.h, so a wrong signature does not compile.
struct CublasLibrary {
    decltype(&::cublasCreate_v2) create = nullptr;
    decltype(&::cublasDestroy_v2) destroy = nullptr;
    decltype(&::cublasSgemm_v2) sgemm = nullptr;
    decltype(static_cast<GemmStridedBatched>(&::cublasGemmStridedBatchedEx)) gemm_strided_batched =
        nullptr;
    decltype(&::cublasGetStatusString) status_string = nullptr;
};

// The loaded library. Errors: unavailable (not found, or a function is missing).
ddprun::Result<const CublasLibrary*> cublas_library();

}  // namespace example
