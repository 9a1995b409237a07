#include "agent/host/cpu_share.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string>

namespace ddprun::agent {
namespace {

Error wrong(std::string sentence) { return Error(ErrorCode::usage, std::move(sentence)); }

using CpuList = std::vector<int>;

template <class Belongs>
CpuList select(std::span<const Cpu> cpus, const Belongs& belongs) {
    CpuList numbers;
    for (const Cpu& cpu : cpus)
        if (belongs(cpu)) numbers.push_back(cpu.number);
    std::ranges::sort(numbers);
    return numbers;
}

// One device's place: its index, its node, and its position among the devices of that node.
struct Device {
    int index = 0, node = 0, position = 0, neighbours = 0;
};

CpuList of_node(std::span<const Cpu> cpus, const Device& device) {
    return select(cpus, [&](const Cpu& cpu) { return cpu.numa_node == device.node; });
}

// All nodes whose first CPU is in the package of this node's first one.
CpuList of_socket(std::span<const Cpu> cpus, const Device& device) {
    std::map<int, const Cpu*> first;
    for (const Cpu& cpu : cpus)
        if (auto& known = first[cpu.numa_node]; !known || cpu.number < known->number) known = &cpu;
    const int package = first.at(device.node)->package;
    return select(cpus,
                  [&](const Cpu& cpu) { return first.at(cpu.numa_node)->package == package; });
}

Result<CpuList> of_cores(std::span<const Cpu> cpus, const Device& device) {
    std::set<int> all;
    for (const Cpu& cpu : cpus)
        if (cpu.numa_node == device.node) all.insert(cpu.core);
    const std::vector<int> cores(all.begin(), all.end());
    const int count = static_cast<int>(cores.size()), share = count / device.neighbours,
              over = count % device.neighbours;
    if (share == 0)
        return wrong("NUMA node " + std::to_string(device.node) + " has " + std::to_string(count) +
                     " cores for " + std::to_string(device.neighbours) +
                     " workers; give fewer workers, or --numa-binding=node");
    // The first ones get one more each when it does not divide.
    const int begin = device.position * share + std::min(device.position, over);
    const int end = begin + share + (device.position < over ? 1 : 0);
    const std::set<int> mine(cores.begin() + begin, cores.begin() + end);
    return select(cpus, [&](const Cpu& cpu) {
        return cpu.numa_node == device.node && mine.contains(cpu.core);
    });
}

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

Result<CpuList> share_of(CpuBinding binding, std::span<const Cpu> cpus, const Device& device) {
    if (of_node(cpus, device).empty())
        return wrong("GPU " + std::to_string(device.index) + " is near NUMA node " +
                     std::to_string(device.node) +
                     ", of which no CPU may be used here; ask Slurm for CPUs near the GPUs, or "
                     "leave the option out");
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

// Worker i of n on node i * nodes / n, so that neighbours in rank are neighbours on the board.
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
        return wrong("this host does not say which CPUs it has; leave the option out");
    for (int& node : device_nodes) node = std::max(node, 0);
    std::vector<std::vector<int>> shares;
    for (int worker = 0; worker < workers; ++worker) {
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
