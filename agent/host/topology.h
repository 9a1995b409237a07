// What the kernel says of this host's CPUs and GPUs and of our share of them: sysfs, /proc and
// cgroups, no library. Shell; any thread; every call looks anew. Folders can be given for tests.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/host/cpu_share.h"
#include "agent/host/gpu_share.h"

namespace ddprun::agent {

struct HostRoots {
    std::string sys = "/sys", proc = "/proc";
};

// What is known of each of these CPUs; a fact that the kernel does not tell is 0, or the CPU
// itself.
std::vector<Cpu> read_cpus(const std::vector<int>& numbers, const HostRoots& roots = {});

// NVIDIA's GPUs in the order of the bus: from its driver's folder in /proc, else (in a container
// without it) the PCI devices that its driver has. Instances are looked up by `nvidia-smi -L` where
// a GPU is divided (MIG).
std::vector<Gpu> find_gpus(const HostRoots& roots = {});

// CPUs' worth of time that our control groups allow us, all their parents counted; nothing: no
// limit.
std::optional<double> cpu_quota(const HostRoots& roots = {});

}  // namespace ddprun::agent
