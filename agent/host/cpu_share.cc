// Divides the CPUs of a host among its workers.
#include "agent/host/cpu_share.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string>

namespace ddprun::agent {
namespace {

// All errors here come from options that do not fit the host, so they are usage errors.

using CpuList = std::vector<int>;

// Returns the numbers of the CPUs for which `belongs` is true, in ascending order.
template <class Belongs>
CpuList select(std::span<const Cpu> cpus, const Belongs& belongs) {
    CpuList numbers;
    for (const Cpu& cpu : cpus)
        if (belongs(cpu)) numbers.push_back(cpu.number);
    std::ranges::sort(numbers);
    return numbers;
}

// Where a device is: its index, its NUMA node, its position among the devices of that node, and the
// number of these devices (`neighbours`). Without GPUs each worker counts as one device.
struct Device {
    int index = 0, node = 0, position = 0, neighbours = 0;
};

CpuList of_node(std::span<const Cpu> cpus, const Device& device) {
    return select(cpus, [&](const Cpu& cpu) { return cpu.numa_node == device.node; });
}

// All NUMA nodes of one package. The kernel knows packages of CPUs and not of NUMA nodes, so the
// first CPU of a node stands for the node.
CpuList of_socket(std::span<const Cpu> cpus, const Device& device) {
    std::map<int, const Cpu*> first;
    for (const Cpu& cpu : cpus)
        if (auto& known = first[cpu.numa_node]; !known || cpu.number < known->number) known = &cpu;
    const int package = first.at(device.node)->package;
    return select(cpus,
                  [&](const Cpu& cpu) { return first.at(cpu.numa_node)->package == package; });
}

// Whole physical cores, so that two workers never share the hardware threads of one core.
Result<CpuList> of_cores(std::span<const Cpu> cpus, const Device& device) {
    std::set<int> all;
    for (const Cpu& cpu : cpus)
        if (cpu.numa_node == device.node) all.insert(cpu.core);
    const std::vector<int> cores(all.begin(), all.end());
    const int count = static_cast<int>(cores.size()), share = count / device.neighbours,
              over = count % device.neighbours;
    if (share == 0)
        return usage_error("NUMA node " + std::to_string(device.node) + " has " +
                           std::to_string(count) + " cores for " +
                           std::to_string(device.neighbours) +
                           " workers; give fewer workers, or --numa-binding=node");
    // If the cores cannot be divided evenly, the first devices get one core more each.
    const int begin = device.position * share + std::min(device.position, over);
    const int end = begin + share + (device.position < over ? 1 : 0);
    const std::set<int> mine(cores.begin() + begin, cores.begin() + end);
    return select(cpus, [&](const Cpu& cpu) {
        return cpu.numa_node == device.node && mine.contains(cpu.core);
    });
}

// The devices of a node take its last-level caches in turn, the cache with the most CPUs first.
// With more devices than caches, several devices share one. torchrun has the same rule.
CpuList of_cache(std::span<const Cpu> cpus, const Device& device) {
    std::map<int, CpuList> by_cache;
    for (const Cpu& cpu : cpus)
        if (cpu.numa_node == device.node) by_cache[cpu.cache].push_back(cpu.number);
    std::vector<CpuList> groups;
    for (auto& [cache, group] : by_cache) {
        std::ranges::sort(group);
        groups.push_back(std::move(group));
    }
    std::ranges::sort(groups, [](const CpuList& a, const CpuList& b) {
        return a.size() != b.size() ? a.size() > b.size() : a.front() < b.front();
    });
    return groups[static_cast<std::size_t>(device.position) % groups.size()];
}

// The CPUs for one device. Slurm may have bound this job to CPUs that are all far from the device.
// Then there is no right answer, and the user has to decide.
Result<CpuList> share_of(CpuBinding binding, std::span<const Cpu> cpus, const Device& device) {
    if (of_node(cpus, device).empty())
        return usage_error(
            "GPU " + std::to_string(device.index) + " is near NUMA node " +
            std::to_string(device.node) +
            ", but this job may use no CPU of that node; request CPUs near the GPUs, or "
            "remove --numa-binding");
    switch (binding) {
        case CpuBinding::node:
            return of_node(cpus, device);
        case CpuBinding::socket:
            return of_socket(cpus, device);
        case CpuBinding::exclusive:
            return of_cores(cpus, device);
        case CpuBinding::core_complex:
            return of_cache(cpus, device);
    }
    return CpuList();
}

// For hosts without GPUs: worker i of n gets NUMA node i * nodes / n. So workers with neighbouring
// ranks are on the same node.
std::vector<int> deal_nodes(std::span<const Cpu> cpus, int workers) {
    std::set<int> found;
    for (const Cpu& cpu : cpus) found.insert(cpu.numa_node);
    const std::vector<int> nodes(found.begin(), found.end());
    std::vector<int> dealt;
    for (int i = 0; i < workers && !nodes.empty(); ++i)
        dealt.push_back(
            nodes[static_cast<std::size_t>(i) * nodes.size() / static_cast<std::size_t>(workers)]);
    return dealt;
}

}  // namespace

// The limit of a million bounds the memory that a damaged text can take.
std::vector<int> read_cpu_list(std::string_view text) {
    std::vector<int> cpus;
    const char *at = text.data(), *const end = at + text.size();
    while (at < end) {
        int first = 0, last = 0;
        auto read = std::from_chars(at, end, first);
        if (read.ec != std::errc()) break;
        last = first;
        if (read.ptr < end && *read.ptr == '-') {
            read = std::from_chars(read.ptr + 1, end, last);
            if (read.ec != std::errc() || last - first > 1'000'000) break;
        }
        for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
        at = read.ptr;
        if (at < end && *at == ',') ++at;
    }
    return cpus;
}

Result<std::vector<std::vector<int>>> share_cpus(CpuBinding binding, std::span<const Cpu> cpus,
                                                 std::vector<int> device_nodes, int workers) {
    if (device_nodes.empty()) device_nodes = deal_nodes(cpus, workers);
    if (device_nodes.empty())
        return usage_error("the CPUs of this host are unknown; remove --numa-binding");
    // The kernel says -1 when a machine has only one NUMA node or the firmware does not tell.
    for (int& node : device_nodes) node = std::max(node, 0);
    std::vector<std::vector<int>> shares;
    for (int worker = 0; worker < workers; ++worker) {
        // With more workers than devices the workers take the devices in turn.
        const std::size_t index = static_cast<std::size_t>(worker) % device_nodes.size();
        Device device{static_cast<int>(index), device_nodes[index], 0, 0};
        for (std::size_t i = 0; i < device_nodes.size(); ++i) {
            if (device_nodes[i] != device.node) continue;
            ++device.neighbours;
            if (i < index) ++device.position;
        }
        auto share = share_of(binding, cpus, device);
        if (!share) return share.error();
        shares.push_back(std::move(*share));
    }
    return shares;
}

}  // namespace ddprun::agent
