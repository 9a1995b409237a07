// gpu.h with the CUDA runtime.
#include <cuda_runtime_api.h>
#include <unistd.h>
#include <boost/algorithm/hex.hpp>

#include "trainer/gpu/cuda_checked.h"
#include "trainer/gpu/gpu.h"

namespace ddprun::trainer {

int gpu_count() {
    int count = 0;
    // The call fails on a machine without a driver. That is no error here: it has no GPU.
    return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

std::string gpu_name(int index) {
    cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, index) != cudaSuccess) return "";
    // One byte less than the buffer: gethostname() may not terminate a name that is too long.
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    char pci[32] = "";
    if (cudaDeviceGetPCIBusId(pci, sizeof pci, index) != cudaSuccess) return "";
    // Two MIG slices of a GPU have the same PCI address. Their UUIDs differ.
    std::string name = std::string(host) + "/" + pci + "/";
    boost::algorithm::hex_lower(properties.uuid.bytes, std::back_inserter(name));
    return name;
}

std::string gpu_state() {
    int count = 0;
    const cudaError_t problem = cudaGetDeviceCount(&count);
    // The runtime gives this code for a missing driver too.
    if (problem == cudaErrorInsufficientDriver) return "no NVIDIA driver, or one too old,";
    if (problem != cudaSuccess) return cudaGetErrorString(problem);
    return std::to_string(count) + (count == 1 ? " GPU" : " GPUs");
}

int gpu_current() {
    int index = -1;
    return cudaGetDevice(&index) == cudaSuccess ? index : -1;
}

GpuTurn::GpuTurn(int index) : before_(gpu_current()) {
    chosen_ = checked(cudaSetDevice(index), "this worker's GPU");
}

GpuTurn::~GpuTurn() {
    if (before_ >= 0) (void)cudaSetDevice(before_);
}

Result<void*> gpu_allocate(std::size_t bytes) {
    void* memory = nullptr;
    if (auto done = checked(cudaMalloc(&memory, bytes), "GPU memory"); !done) return done.error();
    // Zeroed here, so that no caller sees what an earlier owner of the memory left. The wait is for
    // streams that do not wait for the legacy one.
    auto zeroed = checked(cudaMemset(memory, 0, bytes), "GPU memory");
    if (zeroed) zeroed = checked(cudaStreamSynchronize(cudaStreamLegacy), "GPU memory");
    if (!zeroed) return zeroed.error();
    return memory;
}

// An error here is one of an earlier, asynchronous call; nobody could handle it at this place.
void gpu_free(void* memory) { (void)cudaFree(memory); }

// Portable: pinned for all GPUs of this process.
Result<void*> gpu_allocate_pinned(std::size_t bytes) {
    void* memory = nullptr;
    auto done = checked(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable), "pinned host memory");
    if (!done) return done.error();
    return memory;
}

void gpu_free_pinned(void* memory) { (void)cudaFreeHost(memory); }

Result<void> gpu_pin(void* memory, std::size_t bytes) {
    return checked(cudaHostRegister(memory, bytes, cudaHostRegisterPortable), "pinned host memory");
}

void gpu_unpin(void* memory) { (void)cudaHostUnregister(memory); }

Result<void> gpu_copy(void* to, const void* from, std::size_t bytes) {
    // cudaMemcpyDefault: the runtime knows from the addresses which of them are on the GPU.
    return checked(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "copy to or from the GPU");
}

Result<void> gpu_copy(void* to, const void* from, std::size_t bytes, GpuStream stream) {
    return checked(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream),
                   "copy to or from the GPU");
}

Result<void> gpu_zero(void* memory, std::size_t bytes, GpuStream stream) {
    return checked(cudaMemsetAsync(memory, 0, bytes, stream), "GPU memory");
}

}  // namespace ddprun::trainer
