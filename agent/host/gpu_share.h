// Which GPUs a node's workers see, and which of them each has: lists such as CUDA_VISIBLE_DEVICES
// read as CUDA reads them, and torchrun's --virtual-local-rank. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ddprun::agent {

// One GPU of the host, in the order of the PCI bus.
struct Gpu {
    std::string address;           // on the PCI bus: 0000:3b:00.0
    std::string uuid;              // GPU-…; empty: not known
    int numa_node = -1;            // -1: the kernel does not say
    std::vector<std::string> mig;  // names of its instances, where it is divided
};

// The entries that CUDA would use: up to the first that is no device, and none at all of a list
// that names one twice.
std::vector<std::string> devices_listed(std::string_view list);

// The devices that a process sees, in its order: those of the list, else all GPUs by their index,
// and of a divided one its instances by name.
std::vector<std::string> visible_devices(const std::vector<Gpu>& gpus,
                                         const std::optional<std::string>& list);
// How many these are.
int count_devices(const std::vector<Gpu>& gpus, const std::optional<std::string>& list);

// The NUMA nodes of the devices that a process sees, in its order; empty where one of them cannot
// be found among the GPUs.
std::vector<int> device_nodes(const std::vector<Gpu>& gpus, const std::optional<std::string>& list);

// Adds to each GPU the instances that `nvidia-smi -L` names below it.
void add_instances(std::vector<Gpu>& gpus, std::string_view nvidia_smi);

// --virtual-local-rank: what each worker's CUDA_VISIBLE_DEVICES (and with ROCm HIP_VISIBLE_DEVICES)
// becomes, for it to see one device. Possible errors: usage: fewer devices than workers.
Result<std::vector<std::map<std::string, std::string>>> deal_devices(
    const std::vector<Gpu>& gpus, const std::optional<std::string>& cuda,
    const std::optional<std::string>& hip, int workers);

}  // namespace ddprun::agent
