// Divides the CPUs of a host among its workers, so that each worker runs near its GPU
// (--numa-binding). Pure.
//
// The four kinds of binding are torchrun's. On a host without GPUs, where torchrun has no answer,
// the NUMA nodes are dealt out to the workers evenly.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ddprun::agent {

// One CPU that this process may use, and what it shares with other CPUs.
struct Cpu {
    int number = 0;  // the kernel's number of this CPU
    int numa_node = 0;
    int package = 0;  // the physical package (socket)
    int core = 0;     // lowest CPU number of its physical core
    int cache = 0;    // lowest CPU number of those with the same last-level cache
};

// Which CPUs a worker gets. "Its node" is the NUMA node of the worker's GPU.
enum class CpuBinding {
    node,          // all CPUs of its node
    socket,        // all CPUs of the package that contains its node
    exclusive,     // an equal share of the physical cores of its node
    core_complex,  // the CPUs behind one last-level cache of its node, largest first
};

// Parses the kernel's list format, such as "0-3,8". Reading stops at the first thing that does not
// fit.
std::vector<int> read_cpu_list(std::string_view text);

// Returns the CPU numbers of each worker, in ascending order.
//
// `cpus` are the CPUs that this process may use. `device_nodes` has the NUMA node of each GPU;
// worker i uses GPU i, and -1 (the kernel does not know) counts as node 0. If it is empty, there
// are no GPUs, and the nodes are dealt out evenly in order.
//
// Possible errors: usage, when no CPU near a GPU may be used, or (exclusive) when a node has fewer
// cores than GPUs.
Result<std::vector<std::vector<int>>> share_cpus(CpuBinding binding, std::span<const Cpu> cpus,
                                                 std::vector<int> device_nodes, int workers);

}  // namespace ddprun::agent
