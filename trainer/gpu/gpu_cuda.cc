// gpu.h with the CUDA runtime.
#include <cuda_runtime_api.h>
#include <unistd.h>
#include <boost/algorithm/hex.hpp>

#include "trainer/gpu/gpu.h"
#include "trainer/gpu/gpu_kernels.h"

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

namespace {
// A CUDA error as ours. `what` names the failed step for the reader of the message.
Result<void> checked(cudaError_t problem, const char* what) {
    if (problem == cudaSuccess) return {};
    return Error(ErrorCode::unavailable, std::string(what) + ": " + cudaGetErrorString(problem));
}
}  // namespace

Result<void*> gpu_allocate(std::size_t bytes) {
    void* memory = nullptr;
    if (auto done = checked(cudaMalloc(&memory, bytes), "GPU memory"); !done) return done.error();
    // Zeroed here, so that no caller sees what an earlier owner of the memory left.
    if (auto done = gpu_zero(memory, bytes); !done) return done.error();
    return memory;
}

// An error here is one of an earlier, asynchronous call; nobody could handle it at this place.
void gpu_free(void* memory) { (void)cudaFree(memory); }

Result<void> gpu_copy(void* to, const void* from, std::size_t bytes) {
    // cudaMemcpyDefault: the runtime knows from the addresses which of them are on the GPU.
    return checked(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "copy to or from the GPU");
}

Result<void> gpu_zero(void* memory, std::size_t bytes) {
    return checked(cudaMemset(memory, 0, bytes), "GPU memory");
}

Result<double> gpu_square_sum(const float* values, std::size_t count) {
    double sum = 0;
    auto done = checked(launch_square_sum(values, count, &sum), "the norm of the gradients");
    if (!done) return done.error();
    return sum;
}

Result<void> gpu_divide(float* values, std::size_t count, float by) {
    return checked(launch_divide(values, count, by), "dividing gradients");
}

Result<void> gpu_to_bfloat16(void* to, const float* from, std::size_t count, float by) {
    return checked(launch_to_bfloat16(to, from, count, by), "compressing gradients");
}

Result<void> gpu_from_bfloat16(float* to, const void* from, std::size_t count) {
    return checked(launch_from_bfloat16(to, from, count), "decompressing gradients");
}

}  // namespace ddprun::trainer
