// Compares the environments of workers.
#include "warm/rank_variables.h"

#include <algorithm>
#include <iterator>

namespace ddprun::agent::warm {
namespace {

// On a node with one worker nothing can be compared. The last rows are those of other launchers,
// which programs look for, too.
constexpr const char* kKnown[] = {
    "RANK", "LOCAL_RANK", "GROUP_RANK", "ROLE_RANK", "NODE_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE",
    "GROUP_WORLD_SIZE", "ROLE_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
    "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_ERROR_FILE", "TORCHELASTIC_TIMER_FILE",
    "DDPRUN_STOP_FILE", "DDPRUN_SNAPSHOT_FILE", "DDPRUN_EVENTS_FD", "DDPRUN_FLIGHT_RECORDER",
    "DDPRUN_RUN_KEY",
    "TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "SLURM_PROCID",
    "SLURM_LOCALID", "SLURM_NODEID", "SLURM_NTASKS", "SLURM_NPROCS", "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK", "ASCEND_RT_VISIBLE_DEVICES",
    // clang-format: a new row
    "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_LOCAL_RANK", "JSM_NAMESPACE_SIZE", "PMI_RANK", "PMI_SIZE",
    "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_SIZE", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_RANK"};

std::string name_of(const std::string& variable) { return variable.substr(0, variable.find('=')); }

}  // namespace

std::set<std::string> rank_variables(const std::vector<std::vector<std::string>>& environments) {
    std::set<std::string> names(std::begin(kKnown), std::end(kKnown));
    if (environments.empty()) return names;
    const std::set<std::string> first(environments.front().begin(), environments.front().end());
    for (const auto& other : environments) {
        const std::set<std::string> each(other.begin(), other.end());
        std::vector<std::string> different;
        std::ranges::set_symmetric_difference(first, each, std::back_inserter(different));
        for (const std::string& variable : different) names.insert(name_of(variable));
    }
    return names;
}

std::vector<std::string> without(const std::vector<std::string>& environment,
                                 const std::set<std::string>& names) {
    std::vector<std::string> rest;
    std::ranges::copy_if(environment, std::back_inserter(rest), [&](const std::string& variable) {
        return !names.contains(name_of(variable));
    });
    return rest;
}

}  // namespace ddprun::agent::warm
