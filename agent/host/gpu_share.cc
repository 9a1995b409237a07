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

std::vector<std::string> entries(std::string_view list) {
    std::vector<std::string> result;
    for (std::size_t at = 0; at <= list.size();) {
        const std::size_t end = std::min(list.find(',', at), list.size());
        result.push_back(trimmed(list.substr(at, end - at)));
        at = end + 1;
    }
    return result;
}

bool is_number(std::string_view id) {
    return !id.empty() && id.find_first_not_of("0123456789") == id.npos;
}

// By index, by the beginning of a UUID, or by that of one of its instances.
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

std::string between(std::string_view line, std::string_view before, char after) {
    const auto at = line.find(before);
    if (at == line.npos) return "";
    line.remove_prefix(at + before.size());
    return trimmed(line.substr(0, line.find(after)));
}

}  // namespace

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

// GPU 0: NVIDIA H100 (UUID: GPU-…)
//   MIG 3g.40gb     Device  0: (UUID: MIG-…)
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

Result<std::vector<std::map<std::string, std::string>>> deal_devices(
    const std::vector<Gpu>& gpus, const std::optional<std::string>& cuda,
    const std::optional<std::string>& hip, int workers) {
    const bool rocm = hip && !trimmed(*hip).empty();
    const auto& list = rocm ? hip : cuda;
    std::vector<std::string> devices;
    if (list) {
        devices = entries(*list);
    } else {
        const bool divided =
            std::ranges::any_of(gpus, [](const Gpu& gpu) { return !gpu.mig.empty(); });
        for (const Gpu& gpu : gpus)
            if (divided) devices.insert(devices.end(), gpu.mig.begin(), gpu.mig.end());
        for (int i = 0; !divided && i < workers; ++i) devices.push_back(std::to_string(i));
    }
    if (static_cast<int>(devices.size()) < workers)
        return Error(ErrorCode::usage,
                     "--virtual-local-rank: " + std::to_string(workers) + " workers, but " +
                         std::to_string(devices.size()) +
                         (devices.size() == 1 ? " device" : " devices") +
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
