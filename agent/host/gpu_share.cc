// Reads device lists such as CUDA_VISIBLE_DEVICES and deals devices to workers.
#include "agent/host/gpu_share.h"

#include <algorithm>
#include <charconv>
#include <set>

namespace ddprun::agent {
namespace {

std::string trimmed(std::string_view text) {
    const auto first = text.find_first_not_of(" \t");
    if (first == text.npos) return "";
    return std::string(text.substr(first, text.find_last_not_of(" \t") - first + 1));
}

// Splits at commas. An empty text gives one empty entry, as Python's split() does.
std::vector<std::string> entries(std::string_view list) {
    std::vector<std::string> result;
    for (std::size_t at = 0; at <= list.size();) {
        const std::size_t end = std::min(list.find(',', at), list.size());
        result.push_back(trimmed(list.substr(at, end - at)));
        at = end + 1;
    }
    return result;
}

// Tells an index from a UUID.
bool is_number(std::string_view id) {
    return !id.empty() && id.find_first_not_of("0123456789") == id.npos;
}

// CUDA accepts an index, or the beginning of a UUID, of a GPU or of a MIG instance.
const Gpu* find_gpu(const std::vector<Gpu>& gpus, const std::string& id) {
    if (is_number(id)) {
        std::size_t index = 0;
        std::from_chars(id.data(), id.data() + id.size(), index);
        return index < gpus.size() ? &gpus[index] : nullptr;
    }
    for (const Gpu& gpu : gpus) {
        if (!gpu.uuid.empty() && gpu.uuid.starts_with(id)) return &gpu;
        for (const std::string& instance : gpu.mig)
            if (instance.starts_with(id)) return &gpu;
    }
    return nullptr;
}

// The text between `before` and the next `after`, without blanks at its ends; empty when `before`
// is not there.
std::string between(std::string_view line, std::string_view before, char after) {
    const auto at = line.find(before);
    if (at == line.npos) return "";
    line.remove_prefix(at + before.size());
    return trimmed(line.substr(0, line.find(after)));
}

}  // namespace

// CUDA ignores everything from the first invalid entry on (CUDA C++ Programming Guide, "CUDA
// Environment Variables"). It uses no device at all when one is listed twice.
std::vector<std::string> devices_listed(std::string_view list) {
    std::vector<std::string> devices;
    std::set<std::string> seen;
    for (const std::string& id : entries(list)) {
        if (!is_number(id) && !id.starts_with("GPU-") && !id.starts_with("MIG-")) break;
        if (!seen.insert(id).second) return {};
        devices.push_back(id);
    }
    return devices;
}

// Without a list CUDA shows all GPUs. Of a GPU that is divided (MIG) only the instances can be
// used.
std::vector<std::string> visible_devices(const std::vector<Gpu>& gpus,
                                         const std::optional<std::string>& list) {
    if (list) return devices_listed(*list);
    std::vector<std::string> devices;
    for (std::size_t i = 0; i < gpus.size(); ++i) {
        devices.insert(devices.end(), gpus[i].mig.begin(), gpus[i].mig.end());
        if (gpus[i].mig.empty()) devices.push_back(std::to_string(i));
    }
    return devices;
}

int count_devices(const std::vector<Gpu>& gpus, const std::optional<std::string>& list) {
    return static_cast<int>(visible_devices(gpus, list).size());
}

// If one GPU is unknown, the order of the others cannot be trusted either, so the answer is empty.
std::vector<int> device_nodes(const std::vector<Gpu>& gpus,
                              const std::optional<std::string>& list) {
    std::vector<int> nodes;
    if (!list) {
        for (const Gpu& gpu : gpus)
            nodes.insert(nodes.end(), std::max<std::size_t>(gpu.mig.size(), 1), gpu.numa_node);
        return nodes;
    }
    for (const std::string& id : devices_listed(*list)) {
        const Gpu* gpu = find_gpu(gpus, id);
        if (!gpu) return {};
        nodes.push_back(gpu->numa_node);
    }
    return nodes;
}

// Parses lines like these. An instance belongs to the GPU above it.
//   GPU 0: NVIDIA H100 (UUID: GPU-…)
//     MIG 3g.40gb     Device  0: (UUID: MIG-…)
void add_instances(std::vector<Gpu>& gpus, std::string_view nvidia_smi) {
    Gpu* current = nullptr;
    while (!nvidia_smi.empty()) {
        const std::size_t end = std::min(nvidia_smi.find('\n'), nvidia_smi.size());
        const std::string_view line = nvidia_smi.substr(0, end);
        nvidia_smi.remove_prefix(std::min(end + 1, nvidia_smi.size()));
        const std::string uuid = between(line, "(UUID:", ')');
        if (uuid.starts_with("GPU-")) {
            const auto gpu = std::ranges::find(gpus, uuid, &Gpu::uuid);
            current = gpu == gpus.end() ? nullptr : &*gpu;
        } else if (uuid.starts_with("MIG-") && current) {
            current->mig.push_back(uuid);
        }
    }
}

// HIP_VISIBLE_DEVICES decides if it is set and not empty (ROCm), else CUDA_VISIBLE_DEVICES. Without
// both, devices are numbered from 0.
Result<std::vector<std::map<std::string, std::string>>> deal_devices(
    const std::vector<Gpu>& gpus, const std::optional<std::string>& cuda,
    const std::optional<std::string>& hip, int workers) {
    const bool rocm = hip && !trimmed(*hip).empty();
    const auto& list = rocm ? hip : cuda;
    std::vector<std::string> devices;
    if (list) {
        devices = entries(*list);
    } else {
        // MIG instances have no index that CUDA accepts, so they are named by UUID.
        const bool divided =
            std::ranges::any_of(gpus, [](const Gpu& gpu) { return !gpu.mig.empty(); });
        for (const Gpu& gpu : gpus)
            if (divided) devices.insert(devices.end(), gpu.mig.begin(), gpu.mig.end());
        for (int i = 0; !divided && i < workers; ++i) devices.push_back(std::to_string(i));
    }
    if (static_cast<int>(devices.size()) < workers)
        return usage_error(
            "--virtual-local-rank: " + std::to_string(workers) + " workers, but " +
            std::to_string(devices.size()) + (devices.size() == 1 ? " device" : " devices") +
            (list ? " in \"" + *list + "\"" : "") +
            "; give --nproc-per-node=" + std::to_string(devices.size()) + " or fewer");
    std::vector<std::map<std::string, std::string>> dealt;
    for (int i = 0; i < workers; ++i) {
        const std::string& device = devices[static_cast<std::size_t>(i)];
        dealt.push_back({{"LOCAL_RANK", "0"}, {"CUDA_VISIBLE_DEVICES", device}});
        if (rocm) dealt.back()["HIP_VISIBLE_DEVICES"] = device;
    }
    return dealt;
}

}  // namespace ddprun::agent
