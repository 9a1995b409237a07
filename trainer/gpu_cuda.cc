#include <cuda_runtime_api.h>
#include <unistd.h>

#include "trainer/gpu.h"

namespace ddprun::trainer {

int gpu_count() {
    int count = 0;
    return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

std::string gpu_name(int index) {
    cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, index) != cudaSuccess) return "";
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    char pci[32] = "";
    if (cudaDeviceGetPCIBusId(pci, sizeof pci, index) != cudaSuccess) return "";
    // Two MIG slices have one PCI address; their UUIDs differ.
    std::string name = std::string(host) + "/" + pci + "/";
    static constexpr char kDigits[] = "0123456789abcdef";
    for (char byte : properties.uuid.bytes) {
        name += kDigits[(byte >> 4) & 15];
        name += kDigits[byte & 15];
    }
    return name;
}

std::string gpu_state() {
    int count = 0;
    const cudaError_t problem = cudaGetDeviceCount(&count);
    if (problem == cudaErrorInsufficientDriver) return "no NVIDIA driver, or one too old,";
    if (problem != cudaSuccess) return cudaGetErrorString(problem);
    return std::to_string(count) + (count == 1 ? " GPU" : " GPUs");
}

}  // namespace ddprun::trainer
