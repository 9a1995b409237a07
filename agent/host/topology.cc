// Reads CPUs, NUMA nodes, GPUs and CPU quotas from sysfs, /proc and cgroups.
#include "agent/host/topology.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "base/loop/child_program.h"

namespace ddprun::agent {
namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& file) {
    std::ifstream in(file);
    std::string line;
    std::getline(in, line);
    return line;
}

// Returns the number in a file, or `otherwise` if there is none: the kernel leaves out files for
// what it does not know.
int number_in(const fs::path& file, int otherwise) {
    const std::string line = first_line(file);
    char* end = nullptr;
    const long value = std::strtol(line.c_str(), &end, 10);
    return end == line.c_str() ? otherwise : static_cast<int>(value);
}

// Sorted, because directory order is arbitrary and GPUs must come in the order of the bus.
std::vector<fs::path> entries_of(const fs::path& folder) {
    std::vector<fs::path> paths;
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
        paths.push_back(it->path());
    std::ranges::sort(paths);
    return paths;
}

// The lowest CPU of a list is the name of a group of CPUs, for example of a core.
int lowest(const fs::path& list, int otherwise) {
    const std::vector<int> cpus = read_cpu_list(first_line(list));
    return cpus.empty() ? otherwise : *std::ranges::min_element(cpus);
}

// Maps each CPU to its NUMA node. The folder has other entries ("online", "possible"), so only
// "node" with digits counts.
std::map<int, int> numa_nodes(const HostRoots& roots) {
    std::map<int, int> node_of;
    for (const fs::path& path : entries_of(roots.sys + "/devices/system/node")) {
        const std::string name = path.filename();
        if (!name.starts_with("node") || name.find_first_not_of("0123456789", 4) != name.npos)
            continue;
        for (const int cpu : read_cpu_list(first_line(path / "cpulist")))
            node_of[cpu] = std::atoi(name.c_str() + 4);
    }
    return node_of;
}

// Finds the data or unified cache of the highest level, and returns the lowest CPU that shares it.
int last_cache(const fs::path& cpu, int number) {
    int level = 0, lowest_cpu = number;
    for (const fs::path& index : entries_of(cpu / "cache")) {
        if (first_line(index / "type") == "Instruction") continue;
        const int its_level = number_in(index / "level", 0);
        if (its_level <= level) continue;
        level = its_level;
        lowest_cpu = lowest(index / "shared_cpu_list", number);
    }
    return lowest_cpu;
}

// A GPU is divided (MIG) if the driver shows GPU instances ("gi0", "gi1", …) for it. This check is
// cheap; nvidia-smi is not.
bool is_divided(const HostRoots& roots) {
    for (const fs::path& gpu : entries_of(roots.proc + "/driver/nvidia/capabilities"))
        for (const fs::path& instance : entries_of(gpu / "mig"))
            if (instance.filename().string().starts_with("gi")) return true;
    return false;
}

// A driver that hangs must not make ddprun hang.
Result<ProgramResult> ask_nvidia_smi() {
    return run_program_now({"nvidia-smi", "-L"}, std::chrono::seconds{20});
}

// A line of the file reads "GPU UUID:  GPU-…".
std::string uuid_in(const fs::path& information) {
    std::ifstream in(information);
    for (std::string line; std::getline(in, line);) {
        const auto at = line.find("GPU-");
        if (at == line.npos) continue;
        return line.substr(at, line.find_last_not_of(" \t\r") - at + 1);
    }
    return "";
}

// NVIDIA's driver may write the PCI address in upper case; sysfs uses lower case.
Gpu gpu_at(std::string address, const HostRoots& roots) {
    Gpu gpu;
    for (char& c : address) c = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
    gpu.numa_node = number_in(roots.sys + "/bus/pci/devices/" + address + "/numa_node", -1);
    gpu.address = std::move(address);
    return gpu;
}

// 10de is NVIDIA's PCI vendor id. The classes are VGA controller (0300) and 3D controller (0302).
// The device must be bound to NVIDIA's driver: a GPU that is passed to a virtual machine is not
// usable here.
bool is_nvidia_gpu(const fs::path& device) {
    std::error_code error;
    const std::string type = first_line(device / "class");
    return first_line(device / "vendor") == "0x10de" &&
           (type.starts_with("0x0300") || type.starts_with("0x0302")) &&
           fs::read_symlink(device / "driver", error).filename() == "nvidia";
}

// A cgroup is limited by all its parents, too. So this walks from the group up to the root and
// returns the smallest quota on the way, in CPUs.
std::optional<double> least_quota(fs::path group, const fs::path& root,
                                  double (*quota)(const fs::path&)) {
    std::optional<double> least;
    for (;; group = group.parent_path()) {
        if (const double value = quota(group); value > 0 && (!least || value < *least))
            least = value;
        if (group == root || !group.has_relative_path()) return least;
    }
}

// The file has quota and period in microseconds: "50000 100000" means half a CPU. "max 100000"
// means no limit; it cannot be read as a number, and the result is 0.
double quota_v2(const fs::path& group) {
    std::istringstream line(first_line(group / "cpu.max"));
    double quota = 0, period = 0;
    return line >> quota >> period && period > 0 ? quota / period : 0;
}

// A quota of -1 means no limit.
double quota_v1(const fs::path& group) {
    const int quota = number_in(group / "cpu.cfs_quota_us", -1),
              period = number_in(group / "cpu.cfs_period_us", 0);
    return quota > 0 && period > 0 ? static_cast<double>(quota) / period : 0;
}

}  // namespace

std::vector<Cpu> read_cpus(const std::vector<int>& numbers, const HostRoots& roots) {
    const std::map<int, int> node_of = numa_nodes(roots);
    std::vector<Cpu> cpus;
    for (const int number : numbers) {
        const fs::path folder = roots.sys + "/devices/system/cpu/cpu" + std::to_string(number);
        const auto node = node_of.find(number);
        cpus.push_back({.number = number,
                        .numa_node = node == node_of.end() ? 0 : node->second,
                        .package = number_in(folder / "topology/physical_package_id", 0),
                        .core = lowest(folder / "topology/thread_siblings_list", number),
                        .cache = last_cache(folder, number)});
    }
    return cpus;
}

FoundGpus find_gpus(const HostRoots& roots) {
    FoundGpus found;
    std::vector<Gpu>& gpus = found.gpus;
    for (const fs::path& path : entries_of(roots.proc + "/driver/nvidia/gpus")) {
        gpus.push_back(gpu_at(path.filename(), roots));
        gpus.back().uuid = uuid_in(path / "information");
    }
    // In a container the driver's folder in /proc may be missing, while sysfs is there.
    std::error_code missing;
    if (gpus.empty() && fs::exists(roots.sys + "/bus/pci/drivers/nvidia", missing))
        for (const fs::path& path : entries_of(roots.sys + "/bus/pci/devices"))
            if (is_nvidia_gpu(path)) gpus.push_back(gpu_at(path.filename(), roots));
    if (!gpus.empty() && is_divided(roots)) {
        const auto answer = ask_nvidia_smi();
        if (answer)
            add_instances(gpus, answer->output);
        else
            found.fault = answer.error().sentence();
    }
    return found;
}

// Lines of /proc/self/cgroup read "id:controllers:path". The list of controllers is empty for
// version 2. A host may use both versions at the same time.
std::optional<double> cpu_quota(const HostRoots& roots) {
    std::ifstream groups(roots.proc + "/self/cgroup");
    const fs::path root = roots.sys + "/fs/cgroup";
    std::optional<double> least;
    for (std::string line; std::getline(groups, line);) {
        const auto first = line.find(':'), second = line.find(':', first + 1);
        if (second == line.npos) continue;
        const std::string controllers = line.substr(first + 1, second - first - 1);
        // Without its leading slash; otherwise fs::path would treat it as absolute and ignore the
        // root.
        const std::string path = line.substr(second + 2);
        std::optional<double> quota;
        // A path of nothing would add a slash, and the root would be looked at twice.
        const auto group_in = [&path](const fs::path& folder) {
            return path.empty() ? folder : folder / path;
        };
        if (controllers.empty()) quota = least_quota(group_in(root), root, quota_v2);
        if (("," + controllers + ",").find(",cpu,") != std::string::npos)
            quota = least_quota(group_in(root / "cpu"), root / "cpu", quota_v1);
        if (quota && (!least || *quota < *least)) least = quota;
    }
    return least;
}

}  // namespace ddprun::agent
