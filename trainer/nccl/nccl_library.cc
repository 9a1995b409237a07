// Finds libnccl.so.2 and its functions with dlopen.
#include "trainer/nccl/nccl_library.h"

#include <dlfcn.h>

#include <string>

namespace ddprun::trainer {
namespace {

// First the loader's own paths (LD_LIBRARY_PATH, those of a container), then the path of the build.
void* open_library() {
    void* handle = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    return handle ? handle : dlopen(DDPRUN_NCCL_LIBRARY, RTLD_NOW | RTLD_LOCAL);
}

// dlsym() returns a bare pointer. The cast gives it the type that nccl.h declares for this
// function.
template <class Function>
bool find(void* handle, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(handle, name));
    return function != nullptr;
}

bool find_collectives(void* handle, NcclLibrary& nccl) {
    return find(handle, "ncclAllReduce", nccl.all_reduce) &&
           find(handle, "ncclBroadcast", nccl.broadcast) &&
           find(handle, "ncclReduce", nccl.reduce) &&
           find(handle, "ncclAllGather", nccl.all_gather) &&
           find(handle, "ncclReduceScatter", nccl.reduce_scatter) &&
           find(handle, "ncclGather", nccl.gather) && find(handle, "ncclScatter", nccl.scatter) &&
           find(handle, "ncclAlltoAll", nccl.all_to_all) && find(handle, "ncclSend", nccl.send) &&
           find(handle, "ncclRecv", nccl.receive);
}

// The handle is never closed: the communicators use the library until the process ends.
Result<NcclLibrary> load() {
    void* handle = open_library();
    if (!handle)
        return Error(ErrorCode::unavailable,
                     "libnccl.so.2 cannot be loaded; add its folder to LD_LIBRARY_PATH");
    NcclLibrary nccl;
    const bool all = find(handle, "ncclGetVersion", nccl.get_version) &&
                     find(handle, "ncclGetUniqueId", nccl.get_unique_id) &&
                     find(handle, "ncclCommInitRankConfig", nccl.comm_init) &&
                     find(handle, "ncclCommGetAsyncError", nccl.comm_async_error) &&
                     find(handle, "ncclCommFinalize", nccl.comm_finalize) &&
                     find(handle, "ncclCommDestroy", nccl.comm_destroy) &&
                     find(handle, "ncclCommAbort", nccl.comm_abort) &&
                     find(handle, "ncclCommSplit", nccl.comm_split) &&
                     find(handle, "ncclCommCount", nccl.comm_count) &&
                     find(handle, "ncclGroupStart", nccl.group_start) &&
                     find(handle, "ncclGroupEnd", nccl.group_end) &&
                     find_collectives(handle, nccl) &&
                     find(handle, "ncclGetErrorString", nccl.error_string) &&
                     find(handle, "ncclGetLastError", nccl.last_error);
    int version = 0;
    // An older library may lack functions, or fields of the structures that nccl.h declares.
    if (!all || nccl.get_version(&version) != ncclSuccess || version < NCCL_VERSION_CODE) {
        return Error(ErrorCode::unavailable, "libnccl.so.2 has version " + std::to_string(version) +
                                                 ", this program was built for " +
                                                 std::to_string(NCCL_VERSION_CODE) + " or newer");
    }
    return nccl;
}

}  // namespace

Result<const NcclLibrary*> nccl_library() {
    // C++ makes sure that only one thread initializes it.
    static const Result<NcclLibrary> loaded = load();
    if (!loaded) return loaded.error();
    return &*loaded;
}

}  // namespace ddprun::trainer
