// What this host has, as far as a launch needs it: name, GPUs, CPUs, addresses, and the limit on
// open files.
//
// Without NSS, CUDA or any library: /proc, sysfs and system calls. Any thread; every call looks
// anew.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ddprun::agent {

// The host's own name up to the first dot, as Slurm names nodes.
std::string short_host_name();

// GPUs that this process may use: the entries of CUDA_VISIBLE_DEVICES if it is set, else those of
// the NVIDIA driver.
int gpu_count();
// The two halves of it, for tests: the entries CUDA would use of a list (up to the first that is
// not an id), and the folders of /proc/driver/nvidia/gpus.
int count_visible_devices(const std::string& list);
int count_driver_gpus(const std::string& folder = "/proc/driver/nvidia/gpus");

// CPUs in the affinity mask, ascending.
std::vector<int> allowed_cpus();

// All addresses of all interfaces as text ("10.0.0.7", "fe80::1"), loopback too, each once.
std::vector<std::string> interface_addresses();

// Raises the soft limit of open files to the hard one; returns the old soft limit, which workers
// are given back. Nothing when it could not be read.
std::optional<std::uint64_t> raise_nofile_limit();

}  // namespace ddprun::agent
