// Reads answers of nvidia-smi.
#include "diagnosis/standstill/gpu_use.h"

#include <algorithm>
#include <charconv>

namespace ddprun::agent {
namespace {

// The words of each line, without the spaces around them.
std::vector<std::vector<std::string>> table_of(std::string_view text) {
    std::vector<std::vector<std::string>> table;
    for (std::size_t from = 0; from < text.size();) {
        const std::size_t end = std::min(text.find('\n', from), text.size());
        std::vector<std::string> words(1);
        for (const char letter : text.substr(from, end - from)) {
            if (letter == ',')
                words.emplace_back();
            else if (letter != ' ' && letter != '\r')
                words.back() += letter;
        }
        table.push_back(std::move(words));
        from = end + 1;
    }
    return table;
}

bool is_number(const std::string& word) {
    return !word.empty() && word.size() <= 9 &&
           word.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

std::vector<std::string> ask_for_gpus() {
    return {"nvidia-smi", "--query-gpu=uuid,index,utilization.gpu",
            "--format=csv,noheader,nounits"};
}

std::vector<std::string> ask_for_gpu_processes() {
    return {"nvidia-smi", "--query-compute-apps=gpu_uuid,pid", "--format=csv,noheader,nounits"};
}

std::vector<GpuUse> gpu_use(std::string_view gpus, std::string_view processes) {
    std::vector<GpuUse> found;
    for (const auto& words : table_of(gpus))
        if (words.size() == 3 && is_number(words[1]) && is_number(words[2]))
            found.push_back({words[0], words[1], words[2], {}});
    for (const auto& words : table_of(processes)) {
        if (words.size() != 2 || !is_number(words[1])) continue;
        const auto gpu = std::ranges::find(found, words[0], &GpuUse::uuid);
        if (gpu != found.end()) gpu->processes.push_back(std::stol(words[1]));
    }
    return found;
}

std::string gpus_of(const std::vector<GpuUse>& gpus, const std::vector<std::int64_t>& processes) {
    std::string text;
    for (const GpuUse& gpu : gpus)
        if (std::ranges::find_first_of(gpu.processes, processes) != gpu.processes.end())
            text += (text.empty() ? "GPU " : ", GPU ") + gpu.index + " at " + gpu.percent + " %";
    return text;
}

}  // namespace ddprun::agent
