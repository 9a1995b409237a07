// Tells what the kernel knows about this host's CPUs and GPUs, and how much of them this process
// may use. Sources: sysfs, /proc, cgroups and, for MIG only, nvidia-smi.
//
// Thread: any. Every call asks again. Tests pass other folders.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/host/cpu_share.h"
#include "agent/host/gpu_share.h"

namespace ddprun::agent {

// Where sysfs and /proc are.
struct HostRoots {
    std::string sys = "/sys", proc = "/proc";
};

// Describes each of these CPUs. What the kernel does not tell is 0, or the CPU itself for `core`
// and `cache`.
std::vector<Cpu> read_cpus(const std::vector<int>& numbers, const HostRoots& roots = {});

// Returns NVIDIA's GPUs in the order of the PCI bus. Source: the driver's folder in /proc; if it is
// missing, as in some containers, the PCI devices that are bound to the driver. If a GPU is divided
// (MIG), `nvidia-smi -L` gives the instances, which may take up to 20 s.
struct FoundGpus {
    std::vector<Gpu> gpus;
    std::string fault;  // why the instances of a divided GPU are missing; empty: they are not
};
FoundGpus find_gpus(const HostRoots& roots = {});

// How many CPUs' worth of time the cgroups of this process allow, all parent groups included; empty
// when there is no limit.
std::optional<double> cpu_quota(const HostRoots& roots = {});

}  // namespace ddprun::agent
