// Finds libnccl.so.2 and its functions with dlopen.
#include "trainer/nccl/nccl_library.h"

#include <dlfcn.h>

namespace ddprun::trainer {
namespace {

// First the loader's own paths (LD_LIBRARY_PATH, those of a container), then the path of the build,
// which is empty if the build had no NCCL.
void* open_library() {
    void* handle = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    const std::string built = DDPRUN_NCCL_LIBRARY;
    return handle || built.empty() ? handle : dlopen(built.c_str(), RTLD_NOW | RTLD_LOCAL);
}

// The file that a function was loaded from.
std::string file_of(void* function) {
    Dl_info info{};
    return dladdr(function, &info) && info.dli_fname ? info.dli_fname : "libnccl.so.2";
}

// Looks functions up and remembers the first one that is not there.
class Finder {
  public:
    explicit Finder(void* handle) : handle_(handle) {}

    // dlsym() returns a bare pointer. The cast gives it the type that nccl_api.h declares.
    template <class Function>
    void find(const char* name, Function& function) {
        find_if_there(name, function);
        if (!function && missing_.empty()) missing_ = name;
    }
    template <class Function>
    void find_if_there(const char* name, Function& function) {
        function = reinterpret_cast<Function>(dlsym(handle_, name));
    }
    const std::string& missing() const { return missing_; }

  private:
    void* const handle_;
    std::string missing_;
};

void find_communicator(Finder& finder, nccl::Functions& nccl) {
    finder.find("ncclGetUniqueId", nccl.GetUniqueId);
    finder.find("ncclCommInitRankConfig", nccl.CommInitRankConfig);
    finder.find("ncclCommGetAsyncError", nccl.CommGetAsyncError);
    finder.find("ncclCommFinalize", nccl.CommFinalize);
    finder.find("ncclCommDestroy", nccl.CommDestroy);
    finder.find("ncclCommAbort", nccl.CommAbort);
    finder.find("ncclCommSplit", nccl.CommSplit);
    finder.find("ncclGetErrorString", nccl.GetErrorString);
    finder.find("ncclGetLastError", nccl.GetLastError);
}

void find_calls(Finder& finder, nccl::Functions& nccl) {
    finder.find("ncclGroupStart", nccl.GroupStart);
    finder.find("ncclGroupEnd", nccl.GroupEnd);
    finder.find("ncclAllReduce", nccl.AllReduce);
    finder.find("ncclBroadcast", nccl.Broadcast);
    finder.find("ncclReduce", nccl.Reduce);
    finder.find("ncclAllGather", nccl.AllGather);
    finder.find("ncclReduceScatter", nccl.ReduceScatter);
    finder.find("ncclGather", nccl.Gather);
    finder.find("ncclScatter", nccl.Scatter);
    finder.find("ncclAlltoAll", nccl.AlltoAll);
    finder.find("ncclSend", nccl.Send);
    finder.find("ncclRecv", nccl.Recv);
}

// The handle is never closed: the communicators use the library until the process ends.
Result<nccl::Functions> load() {
    void* handle = open_library();
    if (!handle)
        return Error(ErrorCode::unavailable,
                     "libnccl.so.2 cannot be loaded; add its folder to LD_LIBRARY_PATH");
    nccl::Functions nccl;
    Finder finder(handle);
    finder.find("ncclGetVersion", nccl.GetVersion);
    find_communicator(finder, nccl);
    find_calls(finder, nccl);
    finder.find_if_there("ncclMemAlloc", nccl.MemAlloc);
    finder.find_if_there("ncclMemFree", nccl.MemFree);
    finder.find_if_there("ncclCommRegister", nccl.CommRegister);
    finder.find_if_there("ncclCommDeregister", nccl.CommDeregister);
    int version = 0;
    if (nccl.GetVersion) (void)nccl.GetVersion(&version);
    const auto file = file_of(reinterpret_cast<void*>(nccl.GetVersion));
    if (auto good = check_nccl(version, file, finder.missing()); !good) return good.error();
    return nccl;
}

}  // namespace

Result<const nccl::Functions*> nccl_library() {
    // C++ makes sure that only one thread initializes it.
    static const Result<nccl::Functions> loaded = load();
    if (!loaded) return loaded.error();
    return &*loaded;
}

}  // namespace ddprun::trainer
