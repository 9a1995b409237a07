// Finds out which GPUs a process sees, and deals them to workers. Lists such as
// CUDA_VISIBLE_DEVICES are read with CUDA's rules; deal_devices() is torchrun's
// --virtual-local-rank. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ddprun::agent {

// One GPU of the host. Lists of GPUs are in the order of the PCI bus.
struct Gpu {
    std::string address;           // PCI address, for example 0000:3b:00.0
    std::string uuid;              // GPU-…; empty when it is not known
    int numa_node = -1;            // -1 when the kernel does not know
    std::vector<std::string> mig;  // UUIDs of its MIG instances, if it is divided
};

// Returns the entries of a list that CUDA would use: all before the first entry that is no device,
// or none if an entry occurs twice.
std::vector<std::string> devices_listed(std::string_view list);

// Returns the devices that a process sees, in its order. With a list, those of the list. Without
// one, all GPUs by index; a GPU that is divided is replaced by its MIG instances, by UUID.
std::vector<std::string> visible_devices(const std::vector<Gpu>& gpus,
                                         const std::optional<std::string>& list);
// The number of visible_devices().
int count_devices(const std::vector<Gpu>& gpus, const std::optional<std::string>& list);

// Returns the NUMA node of each device that a process sees, in its order. Empty when one of the
// devices is not among `gpus`.
std::vector<int> device_nodes(const std::vector<Gpu>& gpus, const std::optional<std::string>& list);

// Adds the MIG instances to their GPUs. `nvidia_smi` is the output of `nvidia-smi -L`.
void add_instances(std::vector<Gpu>& gpus, std::string_view nvidia_smi);

// --virtual-local-rank: returns the variables that make each worker see exactly one device:
// LOCAL_RANK=0, CUDA_VISIBLE_DEVICES, and with ROCm HIP_VISIBLE_DEVICES. `cuda` and `hip` are the
// values that ddprun itself has. Possible errors: usage, when there are fewer devices than workers.
Result<std::vector<std::map<std::string, std::string>>> deal_devices(
    const std::vector<Gpu>& gpus, const std::optional<std::string>& cuda,
    const std::optional<std::string>& hip, int workers);

}  // namespace ddprun::agent
