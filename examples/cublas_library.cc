// Finds libcublas and its functions with dlopen.
#include "examples/cublas_library.h"

#include <dlfcn.h>

#include <string>

namespace example {

using ddprun::Error;
using ddprun::ErrorCode;
using ddprun::Result;

namespace {

// The major version is part of the name, because versions with different numbers are not
// compatible.
const std::string kName = "libcublas.so." + std::to_string(CUBLAS_VER_MAJOR);

// First the loader's own paths (LD_LIBRARY_PATH, those of a container), then the path of the build.
void* open_library() {
    void* handle = dlopen(kName.c_str(), RTLD_NOW | RTLD_LOCAL);
    return handle ? handle : dlopen(DDPRUN_CUBLAS_LIBRARY, RTLD_NOW | RTLD_LOCAL);
}

template <class Function>
bool find(void* handle, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(handle, name));
    return function != nullptr;
}

// The handle is never closed: the functions are used until the process ends.
Result<CublasLibrary> load() {
    void* handle = open_library();
    if (!handle)
        return Error(ErrorCode::unavailable,
                     kName + " cannot be loaded; add its folder to LD_LIBRARY_PATH");
    CublasLibrary cublas;
    if (find(handle, "cublasCreate_v2", cublas.create) &&
        find(handle, "cublasDestroy_v2", cublas.destroy) &&
        find(handle, "cublasSgemm_v2", cublas.sgemm) &&
        find(handle, "cublasGemmStridedBatchedEx", cublas.gemm_strided_batched) &&
        find(handle, "cublasGetStatusString", cublas.status_string))
        return cublas;
    return Error(ErrorCode::unavailable, kName + " lacks a function");
}

}  // namespace

Result<const CublasLibrary*> cublas_library() {
    // C++ makes sure that only one thread initializes it.
    static const Result<CublasLibrary> loaded = load();
    if (!loaded) return loaded.error();
    return &*loaded;
}

}  // namespace example
