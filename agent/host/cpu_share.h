// How the CPUs of a node are dealt to its workers, near their GPUs: torchrun's four bindings, and
// what they mean on a host without GPUs, where torchrun has none. Pure.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ddprun::agent {

// One CPU that we may use, and what it shares with others.
struct Cpu {
    int number = 0;
    int numa_node = 0;
    int package = 0;
    int core = 0;   // lowest CPU of its physical core
    int cache = 0;  // lowest CPU of those behind the same last cache
};

enum class CpuBinding {
    node,          // all of the NUMA node of the worker's GPU
    socket,        // all of the nodes in the same package
    exclusive,     // whole cores of that node, shared evenly among its GPUs
    core_complex,  // those behind one of that node's last caches, the largest first
};

// "0-3,8" as the kernel writes it; what is not a list ends the reading.
std::vector<int> read_cpu_list(std::string_view text);

// For each worker its CPUs, ascending. `device_nodes` are the NUMA nodes of the GPUs, of which
// worker i has the one with index i (a -1 of the kernel counts as 0); without GPUs the nodes are
// dealt out evenly, in order. Possible errors: usage: a GPU's node has no CPU that we may use, or
// (exclusive) fewer cores than GPUs.
Result<std::vector<std::vector<int>>> share_cpus(CpuBinding binding, std::span<const Cpu> cpus,
                                                 std::vector<int> device_nodes, int workers);

}  // namespace ddprun::agent
