// What this host has, as far as a launch needs it: name, CPUs, addresses; GPUs and what lies near
// them are in topology.h.
//
// Without NSS, CUDA or any library: /proc, sysfs and system calls. Any thread; every call looks
// anew.
#pragma once

#include <string>
#include <vector>

namespace ddprun::agent {

// The host's own name up to the first dot, as Slurm names nodes.
std::string short_host_name();

// CPUs in the affinity mask, ascending.
std::vector<int> allowed_cpus();

// All addresses of all interfaces as text ("10.0.0.7", "fe80::1"), loopback too, each once.
std::vector<std::string> interface_addresses();

// The same with the interfaces that have them, in the kernel's order.
struct InterfaceAddress {
    std::string interface;
    std::string address;
};
std::vector<InterfaceAddress> interfaces();

}  // namespace ddprun::agent
