#include "examples/cublas_library.h"

#include <dlfcn.h>

#include <string>

namespace example {

using ddprun::Error;
using ddprun::ErrorCode;
using ddprun::Result;

namespace {

const std::string kName = "libcublas.so." + std::to_string(CUBLAS_VER_MAJOR);

// The loader's own paths first (LD_LIBRARY_PATH, a container's), then where the build found it.
void* open_library() {
    void* handle = dlopen(kName.c_str(), RTLD_NOW | RTLD_LOCAL);
    return handle ? handle : dlopen(DDPRUN_CUBLAS_LIBRARY, RTLD_NOW | RTLD_LOCAL);
}

template <class Function>
bool find(void* handle, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(handle, name));
    return function != nullptr;
}

Result<CublasLibrary> load() {
    void* handle = open_library();
    if (!handle)
        return Error(ErrorCode::unavailable,
                     kName + " cannot be loaded; add its folder to LD_LIBRARY_PATH");
    CublasLibrary cublas;
    if (find(handle, "cublasCreate_v2", cublas.create) &&
        find(handle, "cublasDestroy_v2", cublas.destroy) &&
        find(handle, "cublasSgemm_v2", cublas.sgemm) &&
        find(handle, "cublasGetStatusString", cublas.status_string))
        return cublas;
    return Error(ErrorCode::unavailable, kName + " lacks a function");
}

}  // namespace

Result<const CublasLibrary*> cublas_library() {
    static const Result<CublasLibrary> loaded = load();
    if (!loaded) return loaded.error();
    return &*loaded;
}

}  // namespace example
