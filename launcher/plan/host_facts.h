// What the caller has found out about this host before anything is planned. A plain value.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/host/cpu_share.h"
#include "agent/host/gpu_share.h"
#include "slurm/allocation.h"

namespace ddprun::launcher {

// The default interpreter.
inline constexpr const char* kPython = "python3";

// Facts about this host that the caller collected.
struct HostFacts {
    std::string hostname;
    int cpus = 1;                      // in the affinity mask
    std::vector<agent::Cpu> cpu_list;  // the same, with what they share; for --numa-binding only
    std::optional<double> cpu_quota;   // of our control groups
    std::vector<agent::Gpu> gpus;      // that the host shows; what is visible is decided here
    std::string gpu_fault;             // why instances of a divided GPU are missing (topology.h)
    std::optional<std::string> cuda_visible_devices;  // as set; empty text means none
    std::optional<std::string> hip_visible_devices;
    std::vector<std::pair<std::string, std::string>>
        interfaces;  // each address with its interface in front; for --interface only
    std::vector<std::string> local_addresses;  // as text; for the caller's own address match
    // Addresses of hosts that start steps (the batch script's host, the login node) and are no node
    // of this one.
    std::vector<std::string> addresses_outside_step;
    bool endpoint_unknown = false;  // the endpoint is a name that nobody here knows
    // The endpoint is an address of this bridge, which reaches this host alone (docker0). Else
    // empty.
    std::string endpoint_bridge;
    std::string working_directory;
    std::string temporary_directory = "/tmp";    // for files that stay
    std::string fleeting_directory = "/tmp";     // for those that go with the job
    std::optional<slurm::ScriptJob> script_job;  // whose script has started us without srun
    std::string random_id;                       // for a run that nobody named
    bool called_as_torchrun = false;             // argv[0]: other defaults, see make_plan
    std::optional<std::string> python_exec;      // not PATH's; without, python3
    std::string python_in_path;                  // where that one lies, for the log
    bool omp_num_threads_set = false;
    bool log_at_terminal = false;  // standard error is one
};

}  // namespace ddprun::launcher
